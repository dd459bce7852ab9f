//! What every store keeps to, whatever it is made of.
//!
//! Each function is one clause. `contract_tests!` turns them all into tests of a subject.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures_util::future::join_all;
use refrain::cache::Entry;
use refrain::cache::embedder::{EmbedderId, Embedding};
use refrain::cache::key::{ExactKey, Loosening, Partition, Scope, Tenant};
use refrain::cache::store::{Cursor, Mark, Selector, Store, StoreError};
use refrain::chat::json::Json;
use refrain::chat::{ChatReply, ChatRequest, Extra, Finish, Question, Usage};
use refrain::clock::Timestamp;

/// A store under test.
#[async_trait]
pub(crate) trait Subject: Send {
    /// The store as it is open now.
    fn store(&self) -> &dyn Store;

    /// Closes the store and opens it anew on the same data.
    async fn reopen(&mut self);

    /// Another instance on the same data; `None` where there can only be one.
    fn another(&self) -> Option<Box<dyn Store>> {
        None
    }

    /// Leaves nothing behind, whether or not the clause held.
    async fn finish(self: Box<Self>) {}
}

/// Makes a test of every clause; `$open` is an async function that gives a boxed [`Subject`]
/// or `None` to skip,
/// and this module must be in scope as `contract`.
macro_rules! contract_tests {
    ($open:path) => {
        contract_tests! { $open:
            what_was_written_comes_back,
            the_same_key_is_replaced,
            an_entry_may_change_its_embedder,
            search_is_nearest_first_and_limited,
            search_stays_in_its_scope,
            tenants_and_epochs_never_meet,
            embedders_never_meet,
            expired_entries_are_left_to_the_caller,
            every_selector_counts_and_deletes_what_it_names,
            pages_hold_every_entry_once,
            a_cursor_that_is_none_is_refused,
            similar_obeys_selector_and_threshold,
            marks_merge_by_maximum,
            hostile_and_large_content_comes_back_whole,
            concurrent_writes_all_arrive,
            another_length_of_vector_is_refused,
            everything_outlives_the_store,
            a_closed_store_fails,
            instances_may_begin_at_the_same_moment,
            every_instance_hears_of_every_purge,
        }
    };
    ($open:path: $($clause:ident,)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $clause() {
            let Some(mut subject) = $open().await else { return };
            let clause = std::panic::AssertUnwindSafe(contract::$clause(&mut *subject));
            let outcome = futures_util::FutureExt::catch_unwind(clause).await;
            subject.finish().await;
            if let Err(panic) = outcome {
                std::panic::resume_unwind(panic);
            }
        }
    )* };
}

const DIMENSIONS: usize = 8;

pub(crate) fn embedder() -> EmbedderId {
    EmbedderId::new("tests/first@1")
}

/// A vector at this angle in a plane: the similarity of two is the cosine of their difference.
pub(crate) fn at(degrees: f32) -> Embedding {
    of(&embedder(), degrees)
}

fn of(embedder: &EmbedderId, degrees: f32) -> Embedding {
    let mut vector = [0.0; DIMENSIONS];
    (vector[1], vector[0]) = degrees.to_radians().sin_cos();
    Embedding::new(embedder.clone(), vector)
}

pub(crate) fn scope(namespace: &str, tenant: &str, epoch: u64, system: &str) -> Scope {
    let partition = Partition { namespace: namespace.into(), tenant: Tenant::of_credential(tenant), epoch };
    let messages = format!(r#"{{"messages": [{{"role": "system", "content": "{system}"}}]}}"#);
    let request = ChatRequest {
        model: "m".into(),
        scope: Json::parse(messages.as_bytes(), 16).unwrap(),
        ..ChatRequest::default()
    };
    Scope::new(partition, &request, "p/m", &Loosening::default())
}

pub(crate) fn entry(scope: &Scope, question: &str) -> Entry {
    let parts = Question::try_new(vec![question.to_owned()]);
    Entry {
        key: ExactKey::new(scope, parts.as_ref()),
        scope: scope.clone(),
        question: question.to_owned(),
        reply: ChatReply {
            model: "m-2026".into(),
            text: format!("the answer to {question}"),
            finish: Finish::Stop,
            usage: Some(Usage { prompt_tokens: 7, completion_tokens: 11 }),
            extra: Extra::default(),
        },
        model: "m".into(),
        provider: "p".into(),
        without_usage: false,
        pinned: false,
        tags: vec!["kb:hr".into(), "doc:1".into()],
        written_at: Timestamp(1_750_000_000_000),
        expires_at: Timestamp(1_750_000_600_000),
    }
}

fn namespace(name: &str) -> Selector {
    Selector { namespace: Some(name.into()), ..Selector::default() }
}

pub(crate) async fn what_was_written_comes_back(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let (with, without) = (entry(&scope, "with"), entry(&scope, "without"));
    assert_eq!(store.get(&with.key).await.unwrap(), None);
    store.upsert(&with, Some(&at(0.0))).await.unwrap();
    store.upsert(&without, None).await.unwrap();
    assert_eq!(store.get(&with.key).await.unwrap().as_ref(), Some(&with));
    assert_eq!(store.get(&without.key).await.unwrap().as_ref(), Some(&without));
    let found = store.search(&scope, &at(0.0), 5).await.unwrap();
    assert_eq!(found.len(), 1, "what has no vector is not found by one");
    assert_eq!(found[0].entry, with);
    store.check().await.unwrap();
}

pub(crate) async fn the_same_key_is_replaced(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let old = entry(&scope, "q");
    let mut new = old.clone();
    new.reply.text = "better".into();
    new.tags = vec!["doc:2".into()];
    store.upsert(&old, Some(&at(0.0))).await.unwrap();
    store.upsert(&new, Some(&at(0.0))).await.unwrap();
    assert_eq!(store.get(&new.key).await.unwrap().as_ref(), Some(&new));
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 1);
    let by_tag = |tag: &str| Selector { tag: Some(tag.into()), ..Selector::default() };
    assert_eq!(store.count(&by_tag("doc:1")).await.unwrap(), 0);
    assert_eq!(store.count(&by_tag("doc:2")).await.unwrap(), 1);
}

pub(crate) async fn an_entry_may_change_its_embedder(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let other = EmbedderId::new("tests/second@1");
    let mut entry = entry(&scope, "q");
    for (round, embedding) in [None, Some(at(0.0)), Some(of(&other, 0.0)), None].into_iter().enumerate() {
        entry.reply.text = format!("round {round}");
        store.upsert(&entry, embedding.as_ref()).await.unwrap();
        assert_eq!(store.get(&entry.key).await.unwrap().as_ref(), Some(&entry));
        assert_eq!(store.count(&Selector::default()).await.unwrap(), 1, "in round {round}");
        for looked_for in [at(0.0), of(&other, 0.0)] {
            let found = store.search(&scope, &looked_for, 5).await.unwrap();
            let is_there = embedding.as_ref() == Some(&looked_for);
            assert_eq!(found.len(), usize::from(is_there), "in round {round}");
        }
    }
}

pub(crate) async fn search_is_nearest_first_and_limited(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    for degrees in [80.0, 10.0, 40.0, 20.0, 180.0] {
        store.upsert(&entry(&scope, &degrees.to_string()), Some(&at(degrees))).await.unwrap();
    }
    let found = store.search(&scope, &at(0.0), 3).await.unwrap();
    let questions: Vec<_> = found.iter().map(|candidate| candidate.entry.question.as_str()).collect();
    assert_eq!(questions, ["10", "20", "40"]);
    for (candidate, degrees) in found.iter().zip([10.0_f32, 20.0, 40.0]) {
        assert!((candidate.similarity - degrees.to_radians().cos()).abs() < 1e-4, "{}", candidate.similarity);
    }
    let all = store.search(&scope, &at(0.0), 100).await.unwrap();
    assert_eq!(all.len(), 5);
    assert!((all[4].similarity + 1.0).abs() < 1e-4, "opposite is -1, not {}", all[4].similarity);
    assert!(store.search(&scope, &at(0.0), 0).await.unwrap().is_empty());
}

pub(crate) async fn search_stays_in_its_scope(subject: &mut dyn Subject) {
    let store = subject.store();
    let scopes: Vec<_> = (0..20).map(|n| scope("n", "t", 0, &format!("prompt {n}"))).collect();
    for scope in &scopes {
        store.upsert(&entry(scope, "the same question"), Some(&at(0.0))).await.unwrap();
    }
    for scope in &scopes {
        // A limit of one is only kept by a store that filters first.
        for limit in [1, 100] {
            let found = store.search(scope, &at(0.0), limit).await.unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].entry.scope, *scope);
        }
    }
}

pub(crate) async fn tenants_and_epochs_never_meet(subject: &mut dyn Subject) {
    let store = subject.store();
    let mine = scope("n", "alice", 3, "s");
    let others = [scope("n", "bob", 3, "s"), scope("n", "alice", 4, "s"), scope("m", "alice", 3, "s")];
    store.upsert(&entry(&mine, "q"), Some(&at(0.0))).await.unwrap();
    for other in &others {
        assert!(store.search(other, &at(0.0), 10).await.unwrap().is_empty());
        assert_eq!(store.get(&entry(other, "q").key).await.unwrap(), None);
    }
    assert_eq!(store.search(&mine, &at(0.0), 10).await.unwrap().len(), 1);
}

pub(crate) async fn embedders_never_meet(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let other = EmbedderId::new("tests/second@1");
    let unknown = EmbedderId::new("tests/third@1");
    store.upsert(&entry(&scope, "a"), Some(&at(0.0))).await.unwrap();
    store.upsert(&entry(&scope, "b"), Some(&of(&other, 0.0))).await.unwrap();
    let found = store.search(&scope, &at(0.0), 10).await.unwrap();
    assert_eq!(found.iter().map(|found| &*found.entry.question).collect::<Vec<_>>(), ["a"]);
    let found = store.search(&scope, &of(&other, 0.0), 10).await.unwrap();
    assert_eq!(found.iter().map(|found| &*found.entry.question).collect::<Vec<_>>(), ["b"]);
    assert!(store.search(&scope, &of(&unknown, 0.0), 10).await.unwrap().is_empty());
}

pub(crate) async fn expired_entries_are_left_to_the_caller(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let mut entry = entry(&scope, "q");
    entry.expires_at = Timestamp(1);
    store.upsert(&entry, Some(&at(0.0))).await.unwrap();
    assert_eq!(store.search(&scope, &at(0.0), 1).await.unwrap().len(), 1);
    assert_eq!(store.get(&entry.key).await.unwrap(), Some(entry));
}

/// Every combination of fields against [`Selector::matches`], which says what is meant.
pub(crate) async fn every_selector_counts_and_deletes_what_it_names(subject: &mut dyn Subject) {
    let store = subject.store();
    let entries = varied(48);
    let write = entries.iter().enumerate().map(async |(n, entry)| {
        let embedding = (n % 3 != 0).then(|| at(0.0));
        store.upsert(entry, embedding.as_ref()).await.unwrap();
    });
    join_all(write).await;

    let full = Selector {
        namespace: Some("ns-1".into()),
        tag: Some("doc:1".into()),
        id: Some(entries[1].key),
        model: Some("model-1".into()),
        written_before: Some(Timestamp(1_020)),
        expires_before: Some(Timestamp(2_020)),
        epoch_before: Some(2),
    };
    for mask in 0..1_u32 << 7 {
        let has = |bit: u32| mask & (1 << bit) != 0;
        let selector = Selector {
            namespace: full.namespace.clone().filter(|_| has(0)),
            tag: full.tag.clone().filter(|_| has(1)),
            id: full.id.filter(|_| has(2)),
            model: full.model.clone().filter(|_| has(3)),
            written_before: full.written_before.filter(|_| has(4)),
            expires_before: full.expires_before.filter(|_| has(5)),
            epoch_before: full.epoch_before.filter(|_| has(6)),
        };
        let named = entries.iter().filter(|entry| selector.matches(entry)).count() as u64;
        assert_eq!(store.count(&selector).await.unwrap(), named, "{selector:?}");
    }

    let mut left: Vec<_> = entries.iter().collect();
    for selector in [
        Selector { id: full.id, ..Selector::default() },
        Selector { tag: full.tag, model: full.model, ..Selector::default() },
        Selector { written_before: full.written_before, namespace: full.namespace, ..Selector::default() },
        Selector { expires_before: full.expires_before, ..Selector::default() },
        Selector { epoch_before: full.epoch_before, ..Selector::default() },
        Selector { tag: Some("no such tag".into()), ..Selector::default() },
        Selector::default(),
    ] {
        let named = left.iter().filter(|entry| selector.matches(entry)).count() as u64;
        assert_eq!(store.delete(&selector).await.unwrap(), named, "{selector:?}");
        left.retain(|entry| !selector.matches(entry));
        assert_eq!(store.count(&Selector::default()).await.unwrap(), left.len() as u64);
    }
    assert_eq!(store.delete(&Selector::default()).await.unwrap(), 0);
}

fn varied(count: u64) -> Vec<Entry> {
    let make = |n: u64| {
        let scope = scope(&format!("ns-{}", n % 3), "t", n % 4, "s");
        let mut entry = entry(&scope, &format!("question {n}"));
        entry.model = format!("model-{}", n % 2);
        entry.tags = (0..n % 3).map(|tag| format!("doc:{tag}")).collect();
        entry.written_at = Timestamp(1_000 + n);
        entry.expires_at = Timestamp(2_000 + n * 7 % count);
        entry
    };
    (0..count).map(make).collect()
}

pub(crate) async fn pages_hold_every_entry_once(subject: &mut dyn Subject) {
    let store = subject.store();
    let other = EmbedderId::new("tests/second@1");
    let entries = varied(50);
    for (n, entry) in entries.iter().enumerate() {
        let embedding = [None, Some(at(0.0)), Some(of(&other, 0.0))][n % 3].clone();
        store.upsert(entry, embedding.as_ref()).await.unwrap();
    }
    for (selector, limit) in [(Selector::default(), 7), (Selector::default(), 1000), (namespace("ns-1"), 3)] {
        let mut cursor: Option<Cursor> = None;
        let mut seen = Vec::new();
        loop {
            let page = store.list(&selector, cursor.as_ref(), limit).await.unwrap();
            assert!(page.entries.len() <= limit);
            seen.extend(page.entries.into_iter().map(|entry| entry.key));
            let Some(next) = page.next else { break };
            cursor = Some(next);
        }
        let unique: BTreeSet<_> = seen.iter().copied().collect();
        assert_eq!(unique.len(), seen.len(), "an entry came twice");
        let named = entries.iter().filter(|entry| selector.matches(entry)).map(|entry| entry.key);
        assert_eq!(unique, named.collect());
    }
    // What the cursor points to may be gone by then.
    let page = store.list(&Selector::default(), None, 10).await.unwrap();
    store.delete(&Selector::default()).await.unwrap();
    let rest = store.list(&Selector::default(), page.next.as_ref(), 10).await.unwrap();
    assert!(rest.entries.is_empty() && rest.next.is_none());
}

pub(crate) async fn a_cursor_that_is_none_is_refused(subject: &mut dyn Subject) {
    for text in ["", "x", "../../etc/passwd", "keyed:7", "\u{0}"] {
        let outcome = subject.store().list(&Selector::default(), Some(&Cursor(text.into())), 10).await;
        assert!(matches!(outcome, Err(StoreError::Failed(_))), "{text:?}: {outcome:?}");
    }
}

pub(crate) async fn similar_obeys_selector_and_threshold(subject: &mut dyn Subject) {
    let store = subject.store();
    for (name, degrees) in [("a", 0.0), ("a", 30.0), ("a", 80.0), ("b", 5.0)] {
        let scope = scope(name, &degrees.to_string(), 0, "s");
        store.upsert(&entry(&scope, &degrees.to_string()), Some(&at(degrees))).await.unwrap();
    }
    let questions = async |selector: &Selector, min_similarity, limit| {
        let found = store.similar(selector, &at(0.0), min_similarity, limit).await.unwrap();
        found.into_iter().map(|candidate| candidate.entry.question).collect::<Vec<_>>()
    };
    assert_eq!(questions(&namespace("a"), 0.8, 10).await, ["0", "30"]);
    assert_eq!(questions(&namespace("a"), 1.0, 10).await, ["0"], "reached is enough");
    assert_eq!(questions(&namespace("a"), -1.0, 10).await, ["0", "30", "80"]);
    assert_eq!(questions(&Selector::default(), 0.8, 2).await, ["0", "5"]);
    assert!(questions(&namespace("c"), 0.0, 10).await.is_empty());
    assert!(questions(&Selector::default(), 0.0, 0).await.is_empty());
}

pub(crate) async fn marks_merge_by_maximum(subject: &mut dyn Subject) {
    let mark = |name: &str, at, epoch| Mark { selector: namespace(name), at: Timestamp(at), epoch };
    let tag = Selector { tag: Some("doc:1".into()), ..namespace("a") };
    let tag = Mark { selector: tag, at: Timestamp(7), epoch: None };
    assert_eq!(subject.store().marks().await.unwrap(), []);
    for mark in [
        mark("a", 5, Some(1)),
        mark("b", 6, Some(1)),
        tag.clone(),
        mark("a", 9, Some(3)),
        mark("a", 8, Some(2)),
    ] {
        subject.store().publish(&mark).await.unwrap();
        subject.store().publish(&mark).await.unwrap();
    }
    let expected = [mark("a", 9, Some(3)), mark("b", 6, Some(1)), tag];
    for _ in 0..2 {
        let mut marks = subject.store().marks().await.unwrap();
        marks.sort_by_key(|mark| (mark.selector.tag.clone(), mark.selector.namespace.clone()));
        assert_eq!(marks, expected);
        subject.reopen().await;
    }
}

pub(crate) async fn hostile_and_large_content_comes_back_whole(subject: &mut dyn Subject) {
    let store = subject.store();
    let names = [
        "",
        " ",
        "a.b[0].c",
        "\"quoted\"",
        "年假",
        "👩‍👩‍👧\u{202e}",
        "6f1e2a9c-0000-4000-8000-000000000000",
        "12",
        "null",
    ];
    for name in names {
        let mut entry = entry(&scope(name, "t", u64::MAX, "s"), "为什么？\n\t\u{7}");
        entry.tags = vec![name.into()];
        entry.model = name.into();
        entry.reply.text = name.repeat(3);
        entry.reply.extra.message.insert("big".into(), serde_json::json!(u64::MAX));
        entry.reply.extra.message.insert("small".into(), serde_json::json!([1.0e-300, -0.0, 0.1]));
        entry.expires_at = Timestamp(u64::MAX);
        store.upsert(&entry, Some(&at(0.0))).await.unwrap();
        let selector = Selector { tag: Some(name.into()), model: Some(name.into()), ..namespace(name) };
        assert_eq!(store.count(&selector).await.unwrap(), 1, "{name:?}");
        assert_eq!(store.get(&entry.key).await.unwrap(), Some(entry));
    }
    let scope = scope("large", "t", 0, "s");
    let mut large = entry(&scope, "large");
    large.reply.text = "Größe ".repeat(1 << 20);
    store.upsert(&large, Some(&at(0.0))).await.unwrap();
    assert_eq!(store.search(&scope, &at(0.0), 1).await.unwrap()[0].entry, large);
}

pub(crate) async fn concurrent_writes_all_arrive(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    let entries: Vec<_> = (0..100).map(|n| entry(&scope, &format!("question {n}"))).collect();
    let writes = entries.iter().map(async |entry| store.upsert(entry, Some(&at(0.0))).await.unwrap());
    join_all(writes).await;
    let reads = entries.iter().map(async |entry| {
        assert_eq!(store.get(&entry.key).await.unwrap().as_ref(), Some(entry));
    });
    join_all(reads).await;
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 100);
}

pub(crate) async fn another_length_of_vector_is_refused(subject: &mut dyn Subject) {
    let store = subject.store();
    let scope = scope("n", "t", 0, "s");
    store.prepare(&embedder(), DIMENSIONS).await.unwrap();
    store.upsert(&entry(&scope, "q"), Some(&at(0.0))).await.unwrap();
    store.prepare(&embedder(), DIMENSIONS).await.unwrap();
    let error = store.prepare(&embedder(), 3).await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable(_)), "{error:?}");
    let message = error.to_string();
    for word in ["8", "3", embedder().as_str(), "delete"] {
        assert!(message.contains(word), "{message} lacks {word}");
    }
}

pub(crate) async fn everything_outlives_the_store(subject: &mut dyn Subject) {
    let entries = varied(30);
    for (n, entry) in entries.iter().enumerate() {
        let embedding = (n % 2 == 0).then(|| at(0.0));
        subject.store().upsert(entry, embedding.as_ref()).await.unwrap();
    }
    let deleted = subject.store().delete(&namespace("ns-0")).await.unwrap();
    subject.reopen().await;
    let store = subject.store();
    assert_eq!(store.count(&Selector::default()).await.unwrap(), 30 - deleted);
    for entry in &entries {
        let gone = namespace("ns-0").matches(entry);
        assert_eq!(store.get(&entry.key).await.unwrap().as_ref(), (!gone).then_some(entry));
    }
    let entry = &entries[4];
    assert_eq!(
        store
            .search(&entry.scope, &at(0.0), 100)
            .await
            .unwrap()
            .iter()
            .filter(|found| found.entry == *entry)
            .count(),
        1
    );
    // And it still takes more.
    store.upsert(&entries[0], Some(&at(0.0))).await.unwrap();
    assert_eq!(store.get(&entries[0].key).await.unwrap().as_ref(), Some(&entries[0]));
}

pub(crate) async fn a_closed_store_fails(subject: &mut dyn Subject) {
    let scope = scope("n", "t", 0, "s");
    let entry = entry(&scope, "q");
    let store = subject.store();
    store.upsert(&entry, None).await.unwrap();
    store.close().await;
    let unavailable = |error: StoreError| assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    unavailable(store.get(&entry.key).await.unwrap_err());
    unavailable(store.upsert(&entry, None).await.unwrap_err());
    unavailable(store.count(&Selector::default()).await.unwrap_err());
    unavailable(store.check().await.unwrap_err());
    store.close().await;
    subject.reopen().await;
    assert_eq!(subject.store().get(&entry.key).await.unwrap(), Some(entry));
}

pub(crate) async fn instances_may_begin_at_the_same_moment(subject: &mut dyn Subject) {
    let stores: Vec<_> = (0..8).filter_map(|_| subject.another()).collect();
    let scope = scope("n", "t", 0, "s");
    let writes = stores.iter().enumerate().map(async |(n, store)| {
        store.upsert(&entry(&scope, &format!("question {n}")), Some(&at(0.0))).await.unwrap();
    });
    join_all(writes).await;
    for store in &stores {
        assert_eq!(store.count(&Selector::default()).await.unwrap(), 8);
    }
}

pub(crate) async fn every_instance_hears_of_every_purge(subject: &mut dyn Subject) {
    let (Some(one), Some(other)) = (subject.another(), subject.another()) else { return };
    let mark = |at, epoch| Mark { selector: namespace("n"), at: Timestamp(at), epoch: Some(epoch) };
    let publish = (1..=20).map(async |n| {
        let store = if n % 2 == 0 { &one } else { &other };
        store.publish(&mark(n, n)).await.unwrap();
    });
    join_all(publish).await;
    assert_eq!(one.marks().await.unwrap(), [mark(20, 20)]);
    // A late one changes nothing.
    other.publish(&mark(3, 3)).await.unwrap();
    one.publish(&mark(21, 21)).await.unwrap();
    assert_eq!(other.marks().await.unwrap(), [mark(21, 21)]);
}
