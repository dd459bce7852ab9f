//! What cannot be brought about from outside: slow reads, a full disk, a shard that fails.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use tempfile::TempDir;
use tokio::sync::oneshot;

use super::group::Group;
use super::*;
use crate::cache::key::{Partition, Tenant};
use crate::chat::{ChatReply, ChatRequest, Extra, Finish, Question};
use crate::clock::Timestamp;

const PATIENT: Duration = Duration::from_mins(1);

fn entry(question: &str) -> Entry {
    let partition = Partition { namespace: "n".into(), tenant: Tenant::anonymous(), epoch: 0 };
    let request = ChatRequest { model: "m".into(), ..ChatRequest::default() };
    let scope = Scope::new(partition, &request, "p/m", &crate::cache::key::Loosening::default());
    Entry {
        key: ExactKey::new(&scope, Question::try_new(vec![question.into()]).as_ref()),
        scope,
        question: question.into(),
        reply: ChatReply {
            model: "m".into(),
            text: "answer".into(),
            finish: Finish::Stop,
            usage: None,
            extra: Extra::default(),
        },
        model: "m".into(),
        provider: "p".into(),
        without_usage: false,
        pinned: false,
        tags: Vec::new(),
        written_at: Timestamp(1),
        expires_at: Timestamp(2),
    }
}

fn embedding() -> Embedding {
    Embedding::new(EmbedderId::new("tests"), [1.0, 0.0, 0.0, 0.0])
}

fn upsert(question: &str) -> Change {
    let entry = entry(question);
    let point = PointStructPersisted {
        id: PointId::Uuid(entry.key.as_uuid()),
        vector: VectorStructPersisted::Single(embedding().vector.to_vec()),
        payload: Some(Payload(record::payload(&entry, None).unwrap())),
    };
    Change::Upsert { shard: shards::name(&embedding().embedder), dimensions: Some(4), point: Box::new(point) }
}

#[test]
fn a_group_has_one_flush() {
    let folder = TempDir::new().unwrap();
    let shards = Shards::open(folder.path().to_owned()).unwrap();
    let mut suspects = BTreeSet::new();
    let mut group = Group::new(&shards, &mut suspects);
    let tickets: Vec<_> = (0..100).map(|n| group.add(upsert(&n.to_string()))).collect();
    let outcomes = group.finish();
    assert_eq!(outcomes.flushed.len(), 1);
    assert!(tickets.into_iter().all(|ticket| outcomes.of(ticket) == Ok(1)));
    assert!(suspects.is_empty());
}

#[test]
fn changes_in_a_group_keep_their_order() {
    let folder = TempDir::new().unwrap();
    let shards = Shards::open(folder.path().to_owned()).unwrap();
    let mut suspects = BTreeSet::new();
    let mut group = Group::new(&shards, &mut suspects);
    let first = group.add(upsert("a"));
    let deleted = group.add(Change::Delete(Selector::default()));
    let second = group.add(upsert("b"));
    let outcomes = group.finish();
    assert_eq!(outcomes.of(first), Ok(1));
    assert_eq!(outcomes.of(deleted), Ok(1));
    assert_eq!(outcomes.of(second), Ok(1));
    let shard = shards.get(&shards::name(&embedding().embedder)).unwrap();
    let (left, _) = scroll(&shard, &[], None, 10).unwrap();
    assert_eq!(left, [entry("b")]);
}

#[tokio::test]
async fn reads_are_bounded_in_number_and_time() {
    let folder = TempDir::new().unwrap();
    let store = EdgeStore::open(folder.path(), Duration::from_millis(100), PATIENT).unwrap();
    store.upsert(&entry("q"), Some(&embedding())).await.unwrap();

    let mut slow = Vec::new();
    let mut releases = Vec::new();
    for _ in 0..store.readers.available_permits() {
        let (release, wait) = mpsc::channel::<()>();
        let (begun, is_running) = oneshot::channel();
        releases.push(release);
        let read = store.read(PATIENT, move |_| {
            begun.send(()).unwrap();
            // Ends when the sender is dropped.
            wait.recv().unwrap_or_default();
            Ok(())
        });
        let mut read = Box::pin(read);
        tokio::select! {
            _ = &mut read => unreachable!(),
            running = is_running => running.unwrap(),
        }
        slow.push(read);
    }
    let search = store.search(&entry("q").scope, &embedding(), 1).await;
    assert!(matches!(search, Err(StoreError::TimedOut)), "{search:?}");
    // Giving up on a read does not make room for another: it still runs.
    slow.clear();
    assert!(matches!(store.check().await, Err(StoreError::TimedOut)));

    drop(releases);
    let scope = entry("q").scope;
    let found = store
        .read(PATIENT, move |shards| nearest(shards, &[record::in_scope(&scope)], &embedding(), None, 1));
    assert_eq!(found.await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_full_disk_fails_writes_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let free = Arc::new(AtomicU64::new(u64::MAX));
    let measured = Arc::clone(&free);
    let free_space: FreeSpace = Box::new(move || Ok(measured.load(Ordering::Relaxed)));
    let store = EdgeStore::open_on(folder.path(), PATIENT, PATIENT, free_space).unwrap();
    let (before, after) = (entry("before"), entry("after"));
    store.upsert(&before, Some(&embedding())).await.unwrap();

    free.store(100 << 20, Ordering::Relaxed);
    let error = store.upsert(&after, Some(&embedding())).await.unwrap_err();
    assert!(error.to_string().contains("the disk is full: 100 MiB are left"), "{error}");
    assert_eq!(store.get(&before.key).await.unwrap().as_ref(), Some(&before));
    assert_eq!(store.get(&after.key).await.unwrap(), None);
    assert_eq!(store.search(&before.scope, &embedding(), 5).await.unwrap().len(), 1);
    assert_eq!(store.delete(&Selector::default()).await.unwrap(), 1);

    free.store(u64::MAX, Ordering::Relaxed);
    store.upsert(&after, Some(&embedding())).await.unwrap();
    assert_eq!(store.get(&after.key).await.unwrap(), Some(after));
}

#[tokio::test]
async fn a_shard_that_fails_is_opened_anew_before_the_next_write() {
    let folder = TempDir::new().unwrap();
    let store = EdgeStore::open(folder.path(), PATIENT, PATIENT).unwrap();
    let (before, during, after) = (entry("before"), entry("during"), entry("after"));
    store.upsert(&before, Some(&embedding())).await.unwrap();

    // The folder vanishes below the open shard, which makes flushing panic inside Edge.
    let shard = folder.path().join("shards").join(shards::name(&embedding().embedder));
    let hidden = folder.path().join("hidden");
    std::fs::rename(&shard, &hidden).unwrap();
    let error = store.upsert(&during, Some(&embedding())).await.unwrap_err();
    assert!(matches!(error, StoreError::Failed(_)), "{error:?}");
    assert_eq!(store.get(&before.key).await.unwrap().as_ref(), Some(&before), "reads go on");
    store.upsert(&during, None).await.unwrap_err();
    assert!(matches!(store.get(&before.key).await, Err(StoreError::Unavailable(_))), "it cannot be opened");

    std::fs::rename(&hidden, &shard).unwrap();
    store.upsert(&after, Some(&embedding())).await.unwrap();
    assert_eq!(store.get(&before.key).await.unwrap(), Some(before));
    assert_eq!(store.get(&after.key).await.unwrap(), Some(after));
    store.check().await.unwrap();
}

#[test]
fn a_panic_inside_edge_is_an_error() {
    let folder = TempDir::new().unwrap();
    let shard = Shard::create(&folder.path().join("s"), None).unwrap();
    let outcome =
        shard.with(|_| -> qdrant_edge::OperationResult<()> { panic!("segments flushed: no space") });
    assert_eq!(outcome, Err(StoreError::Failed("segments flushed: no space".into())));
    shard.with(|edge| edge.count(CountRequest { filter: None, exact: true })).unwrap();
}

#[test]
fn the_log_is_cut_and_what_it_numbered_goes_on() {
    let folder = TempDir::new().unwrap();
    let shards = Shards::open(folder.path().to_owned()).unwrap();
    let mut suspects = BTreeSet::new();
    let name = shards::name(&embedding().embedder);
    let write = |suspects: &mut BTreeSet<String>, text: &str| {
        let mut group = Group::new(&shards, suspects);
        let Change::Upsert { shard, dimensions, mut point } = upsert("q") else { unreachable!() };
        let mut entry = entry("q");
        entry.reply.text = text.to_owned();
        point.payload = Some(Payload(record::payload(&entry, None).unwrap()));
        let ticket = group.add(Change::Upsert { shard, dimensions, point });
        assert_eq!(group.finish().of(ticket), Ok(1));
    };
    let large = "x".repeat(3 << 20);
    write(&mut suspects, "small");
    let shard = shards.get(&name).unwrap();
    assert!(!shard.has_long_log());
    let mut writes = 0;
    while !shard.has_long_log() {
        write(&mut suspects, &large);
        writes += 1;
        assert!(writes < 100, "the log never gets long");
    }
    shard.reopen().unwrap();
    assert!(!shard.has_long_log());
    // An update numbered lower than what is stored would be passed over in silence.
    write(&mut suspects, "newest");
    let (found, _) = scroll(&shard, &[], None, 10).unwrap();
    assert_eq!(found[0].reply.text, "newest");
    shard.reopen().unwrap();
    let (found, _) = scroll(&shard, &[], None, 10).unwrap();
    assert_eq!(found[0].reply.text, "newest");
}

#[test]
fn optimizing_gives_room_back_and_loses_nothing() {
    let folder = TempDir::new().unwrap();
    let shards = Shards::open(folder.path().to_owned()).unwrap();
    let mut suspects = BTreeSet::new();
    let mut group = Group::new(&shards, &mut suspects);
    // As many as Edge wants to see before it cleans up, and a fifth of them gone.
    for n in 0..1200 {
        group.add(upsert(&n.to_string()));
    }
    for n in 0..300 {
        let id = Some(entry(&n.to_string()).key);
        group.add(Change::Delete(Selector { id, ..Selector::default() }));
    }
    group.finish();
    let shard = shards.get(&shards::name(&embedding().embedder)).unwrap();
    let is_whole = |shard: &Shard| {
        let (left, next) = scroll(shard, &[], None, 2000).unwrap();
        let questions: BTreeSet<u32> = left.iter().map(|entry| entry.question.parse().unwrap()).collect();
        assert_eq!(questions, (300..1200).collect());
        assert_eq!(next, None);
        let found = nearest(&shards, &[record::in_scope(&left[0].scope)], &embedding(), None, 2000).unwrap();
        assert_eq!(found.len(), 900);
    };
    is_whole(&shard);
    assert_eq!(shard.optimize(), Ok(true));
    assert_eq!(shard.optimize(), Ok(false));
    is_whole(&shard);
    shard.reopen().unwrap();
    is_whole(&shard);
}
