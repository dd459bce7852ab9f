use futures_util::TryStreamExt;

use super::*;
use crate::chat::{EventKind, Question};
use crate::dialect::openai::reply::parse_whole;
use crate::upstream::Piece;

fn rules() -> Rules {
    Rules::try_new("rules", None, Clock::system()).unwrap()
}

fn request(question: &str, stream: bool) -> ChatRequest {
    ChatRequest {
        body: "{}".into(),
        model: "faq".to_owned(),
        question: Question::try_new(vec![question.to_owned()]),
        stream,
        ..ChatRequest::default()
    }
}

#[test]
fn every_built_in_phrase_finds_its_own_answer() {
    let faq: Faq = Figment::from(Toml::string(DEFAULT_FAQ)).extract().unwrap();
    assert!(faq.faq.len() >= 20);
    let rules = rules();
    for entry in &faq.faq {
        for phrase in entry.aliases.iter().chain([&entry.question]) {
            assert_eq!(rules.answer(phrase), entry.answer.trim(), "{phrase}");
        }
    }
}

#[test]
fn other_words_for_the_same_find_it_and_others_do_not() {
    let rules = rules();
    let reset = rules.answer("How do I reset my password?");
    assert_eq!(rules.answer("PASSWORD RESET, please"), reset);
    assert_eq!(rules.answer("How can I reset a forgotten password?"), reset);
    for other in ["", "?", "How do I bake bread?", "How do I?", "password"] {
        assert_eq!(rules.answer(other), NO_ANSWER, "{other}");
    }
}

#[test]
fn a_bad_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    let missing = Rules::try_new("rules", Some(&path), Clock::system()).err().unwrap();
    assert!(missing.contains("my.toml"), "{missing}");
    for text in ["", "faq = []", "[[faq]]\nquestion = \"a\"", "[[faq]]\nquestion = 1\nanswer = \"b\"", "]["] {
        std::fs::write(&path, text).unwrap();
        let error = Rules::try_new("rules", Some(&path), Clock::system()).err().unwrap();
        assert!(error.contains("my.toml"), "{text}: {error}");
    }
    std::fs::write(&path, "[[faq]]\nquestion = \"a b\"\nanswer = \" c \"").unwrap();
    let own = Rules::try_new("rules", Some(&path), Clock::system()).unwrap();
    assert_eq!(own.answer("A, b!"), "c");
}

#[tokio::test]
async fn streamed_and_whole_say_the_same() {
    let rules = rules();
    let Body::Whole(whole) = rules.complete(&request("What is Refrain?", false), "faq", None).await.unwrap()
    else {
        panic!("a stream that was not asked for")
    };
    assert_eq!(parse_whole(&whole.bytes).unwrap(), whole.reply);
    let reply = whole.reply.unwrap();
    assert_eq!((&*reply.model, &reply.finish), ("faq", &Finish::Stop));
    assert!(reply.text.contains("semantic cache"));
    assert!(reply.usage.unwrap().completion_tokens > 10);

    let Body::Stream(pieces) = rules.complete(&request("What is Refrain?", true), "faq", None).await.unwrap()
    else {
        panic!("no stream, though asked for")
    };
    let pieces: Vec<Piece> = pieces.try_collect().await.unwrap();
    let kinds: Vec<_> = pieces
        .iter()
        .filter_map(|piece| if let Piece::Event(event) = piece { Some(event.kind) } else { None })
        .collect();
    assert_eq!(kinds, [EventKind::Other, EventKind::Content, EventKind::Other, EventKind::Usage]);
    let Some(Piece::Complete(end)) = pieces.last() else { panic!("not complete") };
    let complete = end.reply.as_ref().unwrap();
    assert_eq!(*complete, reply);
}
