//! Server-sent events out of a body, however it was cut into chunks.

use std::future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use sse_stream::{Error, Sse, SseByteStream};

use crate::upstream::UpstreamError;

/// The data of each event in `body`. Comments and events without data are passed over; an event
/// named `error` is an error whatever its data. A last event without its blank line counts: some
/// servers end `data: [DONE]` with the connection, and one that was cut fails as JSON.
pub(super) fn events(
    provider: Arc<str>,
    body: impl Stream<Item = Result<Bytes, UpstreamError>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, UpstreamError>> + Send {
    let end = stream::once(future::ready(Ok(Bytes::from_static(b"\n\n"))));
    SseByteStream::new(body.chain(end).boxed())
        .filter_map(move |event| future::ready(data(&provider, event).transpose()))
}

fn data(provider: &Arc<str>, event: Result<Sse, Error>) -> Result<Option<Bytes>, UpstreamError> {
    let broken = |reason: String| UpstreamError::Broken { provider: provider.clone(), reason: reason.into() };
    match event {
        Ok(Sse { event: Some(name), data, .. }) if name == "error" => {
            Err(UpstreamError::inside_success(provider, data.unwrap_or_default().into()))
        }
        Ok(Sse { data, .. }) => Ok(data.filter(|data| !data.is_empty()).map(Bytes::from)),
        Err(Error::Body(error)) => Err(match error.downcast::<UpstreamError>() {
            Ok(error) => *error,
            Err(error) => broken(error.to_string()),
        }),
        Err(error) => Err(broken(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = concat!(
        "\u{feff}: OPENROUTER PROCESSING\n\n",
        "event: message\r\nid: 1\r\nretry: 5\r\ndata: {\"a\":\"Grüße\"}\r\n\r\n",
        "data:{\"b\":\"世界\"}\n\n",
        ": keep-alive\r\r",
        "data: {\"c\":\r",
        "data: \"🌍 नमस्ते\"}\r\r",
        "unknown: x\ndata\n\n",
        "\n\n",
        "data: [DONE]\n\n",
    );

    const EVENTS: [&str; 4] = ["{\"a\":\"Grüße\"}", "{\"b\":\"世界\"}", "{\"c\":\n\"🌍 नमस्ते\"}", "[DONE]"];

    async fn read(chunks: Vec<Result<Bytes, UpstreamError>>) -> Vec<Result<Bytes, String>> {
        let events = events("p".into(), stream::iter(chunks));
        events.map(|event| event.map_err(|error| error.to_string())).collect().await
    }

    async fn read_split(text: &[u8], borders: &[usize]) -> Vec<Result<Bytes, String>> {
        let mut from = 0;
        let mut chunks = Vec::new();
        for to in borders.iter().copied().chain([text.len()]) {
            chunks.push(Ok(Bytes::copy_from_slice(&text[from..to])));
            from = to;
        }
        read(chunks).await
    }

    #[tokio::test]
    async fn the_same_events_wherever_the_chunks_end() {
        let expected = EVENTS.map(|event| Ok(Bytes::from(event)));
        let text = STREAM.as_bytes();
        for border in 0..=text.len() {
            assert_eq!(read_split(text, &[border]).await, expected, "split at {border}");
        }
        for border in 0..text.len() - 1 {
            let borders = [border, border + 1];
            assert_eq!(read_split(text, &borders).await, expected, "split at {borders:?}");
        }
        let single: Vec<usize> = (1..text.len()).collect();
        assert_eq!(read_split(text, &single).await, expected, "byte by byte");
    }

    #[tokio::test]
    async fn a_last_event_needs_no_blank_line() {
        for end in ["data: [DONE]", "data: [DONE]\n", "data: [DONE]\r\n", "data: [DONE]\r"] {
            assert_eq!(read_split(end.as_bytes(), &[]).await, [Ok(Bytes::from("[DONE]"))], "{end:?}");
        }
        assert!(read(Vec::new()).await.is_empty());
    }

    #[tokio::test]
    async fn invalid_utf8_is_an_error_and_not_repaired() {
        let events = read_split(b"data: {}\n\ndata: \xf0\x9f\x8c\n\ndata: {}\n\n", &[]).await;
        assert_eq!(events.len(), 2);
        assert!(events[1].as_ref().unwrap_err().contains("broken answer"));
    }

    #[tokio::test]
    async fn errors_pass_as_they_are() {
        let limit = UpstreamError::TooLarge { provider: "p".into(), limit: 5 };
        let events = read(vec![Ok("data: 1\n\nda".into()), Err(limit)]).await;
        assert_eq!(events, [Ok("1".into()), Err("p sent more than 5 bytes".to_owned())]);
        let named = read(vec![Ok("event: error\ndata: {\"message\":\"overloaded\"}\n\n".into())]).await;
        assert_eq!(named, [Err("p answered 200 (capacity)".to_owned())]);
    }
}
