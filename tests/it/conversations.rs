//! Chats and documents: what of a conversation tells two questions apart.

use serde_json::{Value, json};

use crate::support::TestApp;

const ACROSS: &str = "[namespaces.default]\nscope = { ignore = [\"history\"] }";

/// A question after others.
fn after(history: &str, question: &str) -> Value {
    json!({ "model": "m", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": history },
        { "role": "assistant", "content": "I see." },
        { "role": "user", "content": question },
    ] })
}

#[tokio::test]
async fn a_question_that_stands_alone_meets_itself_in_another_conversation() {
    let app = TestApp::with(ACROSS).await;
    app.provider.answer("Seven.");
    app.post(&after("I like Rome.", "How many hills does Rome have?"), &[]).await;
    app.settle().await;
    let exact = app.post(&after("Let us talk of food.", "How many hills does Rome have?"), &[]).await;
    assert_eq!((exact.source(), exact.text().as_str()), ("exact", "Seven."));
    app.embedder.similar("What number of hills has Rome?", "How many hills does Rome have?", 0.95);
    let similar = app.post(&after("Something else.", "What number of hills has Rome?"), &[]).await;
    assert_eq!(similar.source(), "semantic");
}

#[tokio::test]
async fn a_question_that_leans_on_the_conversation_never_leaves_it() {
    let app = TestApp::with(ACROSS).await;
    for (history, answer) in [("I like Rome.", "Seven."), ("I like San Francisco.", "Some fifty.")] {
        app.provider.answer(answer);
        let miss = app.post(&after(history, "And how many hills does it have?"), &[]).await;
        assert_eq!((miss.source(), miss.text().as_str()), ("upstream", answer));
        assert!(miss.header("cache-status").ends_with("detail=follow_up"), "{miss:?}");
        app.settle().await;
    }
    let again = app.post(&after("I like Rome.", "And how many hills does it have?"), &[]).await;
    assert_eq!((again.source(), again.text().as_str()), ("exact", "Seven."));
    app.embedder.similar("and how many hills has it?", "And how many hills does it have?", 0.99);
    app.provider.answer("Seven, I said.");
    let other_words = app.post(&after("I like Rome.", "and how many hills has it?"), &[]).await;
    assert_eq!(other_words.source(), "upstream", "not in other words, even here");
}

#[tokio::test]
async fn follow_ups_may_match_in_the_same_conversation_where_that_is_wanted() {
    let app = TestApp::with("[namespaces.default]\nfollow_ups = \"match\"").await;
    app.provider.answer("Seven.");
    app.post(&after("I like Rome.", "And how many hills does it have?"), &[]).await;
    app.settle().await;
    app.embedder.similar("and how many hills has it?", "And how many hills does it have?", 0.99);
    let same = app.post(&after("I like Rome.", "and how many hills has it?"), &[]).await;
    assert_eq!(same.source(), "semantic");
    app.provider.answer("Some fifty.");
    let other = app.post(&after("I like San Francisco.", "and how many hills has it?"), &[]).await;
    assert_eq!(other.source(), "upstream");
}

#[tokio::test]
async fn a_first_turn_leans_on_nothing() {
    let app = TestApp::start().await;
    app.provider.answer("Which one?");
    app.ask("And the second one?").await;
    app.settle().await;
    app.embedder.similar("and what about the second?", "And the second one?", 0.99);
    assert_eq!(app.ask("and what about the second?").await.source(), "semantic");
}

/// A prompt with a document.
fn about(document: &str, question: &str) -> Value {
    let turn = format!("Context:\n{document}\nQuestion: {question}");
    json!({ "model": "m", "messages": [{ "role": "user", "content": turn }] })
}

#[tokio::test]
async fn the_question_is_matched_and_its_document_is_scope() {
    let app = TestApp::with(
        "[namespaces.default.question]\npattern = '(?s)^Context:.*\\nQuestion: (?<question>.+)$'",
    )
    .await;
    app.provider.answer("30 days.");
    let miss = app.post(&about("Leave: 30 days.", "How much leave do I get?"), &[]).await;
    assert_eq!(miss.source(), "upstream");
    let sent = String::from_utf8(app.provider.calls().pop().unwrap().body.to_vec()).unwrap();
    assert!(sent.contains("Context:\\nLeave: 30 days.\\nQuestion: How much"), "untouched: {sent}");
    app.settle().await;
    app.embedder.similar("How many days off have I?", "How much leave do I get?", 0.95);
    let hit = app.post(&about("Leave: 30 days.", "How many days off have I?"), &[]).await;
    assert_eq!((hit.source(), hit.text().as_str()), ("semantic", "30 days."));
    app.provider.answer("25 days.");
    let other = app.post(&about("Leave: 25 days.", "How many days off have I?"), &[]).await;
    assert_eq!((other.source(), other.text().as_str()), ("upstream", "25 days."), "another document");
    app.settle().await;
    let same = app.post(&about("Leave: 25 days.", "How much leave do I get?"), &[]).await;
    assert_eq!((same.source(), same.text().as_str()), ("semantic", "25 days."));
}

#[tokio::test]
async fn the_last_part_may_be_the_question() {
    let app = TestApp::with("[namespaces.default]\nquestion = { part = \"last\" }").await;
    let ask = |document: &str, question: &str| {
        let part = |text: &str| json!({ "type": "text", "text": text });
        json!({ "model": "m", "messages": [{ "role": "user", "content": [part(document), part(question)] }] })
    };
    app.provider.answer("30 days.");
    app.post(&ask("Leave: 30 days.", "How much leave do I get?"), &[]).await;
    app.settle().await;
    app.embedder.similar("How many days off have I?", "How much leave do I get?", 0.95);
    assert_eq!(
        app.post(&ask("Leave: 30 days.", "How many days off have I?"), &[]).await.source(),
        "semantic"
    );
    app.provider.answer("25 days.");
    assert_eq!(
        app.post(&ask("Leave: 25 days.", "How many days off have I?"), &[]).await.source(),
        "upstream"
    );
}
