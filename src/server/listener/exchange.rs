//! One request and its answer, as the timers of their connection see them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Response, Version};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::Service;
use tower::Service as _;

use super::turn::{Turn, UnderWay};

/// The router behind one connection.
pub(super) struct Exchange {
    app: Router,
    turn: Turn,
}

impl Exchange {
    pub(super) fn new(app: Router, turn: Turn) -> Self {
        Self { app, turn }
    }
}

impl Service<Request<Incoming>> for Exchange {
    type Response = Response<Answer>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let http2 = request.version() == Version::HTTP_2;
        let under_way = self.turn.begin(http2);
        let turn = self.turn.clone();
        let request = request.map(|body| Asked { body, ended: false, turn: turn.clone() });
        let response = self.app.clone().call(request);
        Box::pin(async move {
            let mut response = response.await?;
            // hyper closes the connection after such an answer; the client should hear of it
            // before it sends the next request there.
            if !http2 && turn.owes_reading() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(response.map(|body| Answer { body, under_way }))
        })
    }
}

/// A request's body; notes when it was not read to its end.
struct Asked {
    body: Incoming,
    ended: bool,
    turn: Turn,
}

impl HttpBody for Asked {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        self.ended |= matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            self.turn.left_unread();
        }
    }
}

/// An answer's body; notes whether the service or the client has to go on.
pub(super) struct Answer {
    body: Body,
    under_way: UnderWay,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.under_way.give();
        } else {
            self.under_way.take_back();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
