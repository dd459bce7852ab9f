//! A provider whose answers the test gives when it likes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use refrain::chat::{ChatReply, ChatRequest, EventKind, Finish, Usage};
use refrain::config::Secret;
use refrain::dialect::openai::reply::{Assembler, Stamp, render_chunks, render_whole};
use refrain::upstream::provider::Provider;
use refrain::upstream::{Body, Event, Piece, UpstreamError, Whole};
use tokio::sync::{mpsc, oneshot};

/// Answers are taken from a script, in order; an unscripted call is a failed test.
pub(crate) struct Scripted {
    name: Arc<str>,
    script: Mutex<VecDeque<Line>>,
    calls: Mutex<Vec<Asked>>,
}

/// A call as the provider saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) body: Bytes,
    pub(crate) model: String,
    pub(crate) credential: Option<String>,
}

enum Line {
    Now(Box<Result<ChatReply, UpstreamError>>),
    When(oneshot::Receiver<Result<ChatReply, UpstreamError>>),
    Stream(mpsc::UnboundedReceiver<Result<Piece, UpstreamError>>),
}

impl Scripted {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.into(), script: Mutex::default(), calls: Mutex::default() }
    }

    /// The next call is answered with this text.
    pub(crate) fn answer(&self, text: &str) {
        self.reply(reply(text));
    }

    /// The next call is answered with this.
    pub(crate) fn reply(&self, reply: ChatReply) {
        self.push(Line::Now(Box::new(Ok(reply))));
    }

    /// The next call fails.
    pub(crate) fn fail(&self, error: UpstreamError) {
        self.push(Line::Now(Box::new(Err(error))));
    }

    /// The next call is answered when the test says so.
    pub(crate) fn hold(&self) -> oneshot::Sender<Result<ChatReply, UpstreamError>> {
        let (sender, receiver) = oneshot::channel();
        self.push(Line::When(receiver));
        sender
    }

    /// The next call is answered by a stream that the test feeds.
    pub(crate) fn stream(&self) -> StreamHandle {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.push(Line::Stream(receiver));
        StreamHandle(sender)
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Asked> {
        self.calls.lock().unwrap().clone()
    }

    /// Scripted answers not yet asked for.
    pub(crate) fn left(&self) -> usize {
        self.script.lock().unwrap().len()
    }

    fn push(&self, line: Line) {
        self.script.lock().unwrap().push_back(line);
    }
}

/// Feeds a stream. Dropped, the stream ends without its terminal event.
pub(crate) struct StreamHandle(mpsc::UnboundedSender<Result<Piece, UpstreamError>>);

impl StreamHandle {
    pub(crate) fn content(&self, text: &str) {
        let data = serde_json::json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "big-1",
            "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": null }],
        });
        let _ =
            self.0.send(Ok(Piece::Event(Event { data: data.to_string().into(), kind: EventKind::Content })));
    }

    pub(crate) fn usage(&self) {
        let data = serde_json::json!({
            "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "big-1", "choices": [],
            "usage": { "prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12 },
        });
        let _ =
            self.0.send(Ok(Piece::Event(Event { data: data.to_string().into(), kind: EventKind::Usage })));
    }

    pub(crate) fn complete(self, text: &str) {
        let _ = self.0.send(Ok(Piece::Complete(Box::new(Some(reply(text)).into()))));
    }

    pub(crate) fn complete_without_usage(self, text: &str) {
        let reply = ChatReply { usage: None, ..reply(text) };
        let _ = self.0.send(Ok(Piece::Complete(Box::new(Some(reply).into()))));
    }

    pub(crate) fn fail(self, error: UpstreamError) {
        let _ = self.0.send(Err(error));
    }

    /// Waits until the service has let go of the stream.
    pub(crate) async fn cancelled(&self) {
        self.0.closed().await;
    }
}

/// A complete answer.
pub(crate) fn reply(text: &str) -> ChatReply {
    ChatReply {
        model: "big-1".to_owned(),
        text: text.to_owned(),
        finish: Finish::Stop,
        usage: Some(Usage { prompt_tokens: 7, completion_tokens: 5 }),
        extra: refrain::chat::Extra::default(),
    }
}

#[async_trait]
impl Provider for Scripted {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        model: &str,
        credential: Option<&Secret>,
    ) -> Result<Body, UpstreamError> {
        self.calls.lock().unwrap().push(Asked {
            body: request.body_for(model),
            model: model.to_owned(),
            credential: credential.map(|secret| secret.expose().to_owned()),
        });
        let line = self.script.lock().unwrap().pop_front().expect("a call that the test did not script");
        let reply = match line {
            Line::Now(result) => (*result)?,
            Line::When(receiver) => receiver.await.expect("the test let go of its answer")?,
            Line::Stream(receiver) => {
                return Ok(Body::Stream(
                    stream::unfold(receiver, |mut receiver| async {
                        let piece = receiver.recv().await?;
                        Some((piece, receiver))
                    })
                    .boxed(),
                ));
            }
        };
        let stamp = Stamp { id: "chatcmpl-fake", created: 1, cached: false };
        if !request.stream {
            let bytes = render_whole(&reply, &stamp);
            return Ok(Body::Whole(Whole::new(bytes, Some(reply))));
        }
        let mut assembler = Assembler::default();
        let events: Vec<_> = render_chunks(&reply, &stamp, request.include_usage)
            .map(|data| {
                let kind = assembler.push(&data).expect("rendered events are legal");
                Ok(Piece::Event(Event { data, kind }))
            })
            .chain([Ok(Piece::Complete(Box::new(Some(reply.clone()).into())))])
            .collect();
        Ok(Body::Stream(stream::iter(events).boxed()))
    }
}
