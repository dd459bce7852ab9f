//! One connection: request after request, each with its mode, until one of the modes ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::asked::{Asked, Dialect};
use super::control;
use super::draft::End;
use super::http2;
use super::mode::{Mode, Status};
use super::request::{self, Head, Incoming};
use super::script::Draw;
use super::socket::Socket;
use super::stage::Stage;
use super::wire::Plan;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
const MALFORMED: &[u8] = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Serves until either side ends it. Dropping the future closes the connection.
pub(super) async fn serve(mut socket: Socket, stage: Arc<Stage>) {
    let mut reused = false;
    loop {
        let head = match request::head(&mut socket).await {
            Incoming::Request(head) => head,
            Incoming::Http2 => return http2::serve(socket, &stage).await,
            Incoming::Malformed => {
                socket.say(MALFORMED).await;
                return socket.close().await;
            }
            Incoming::Gone => return,
        };
        if stage.down().is_some() {
            return socket.reset();
        }
        let end = match Dialect::of_path(&head.path).filter(|_| head.method == "POST") {
            Some(dialect) => attempt(&mut socket, &stage, &head, dialect, reused).await,
            None => control(&mut socket, &stage, &head).await,
        };
        match end {
            Some(End::Keep) if !head.last => reused = true,
            Some(End::Keep | End::Close) => return socket.close().await,
            Some(End::Reset) => return socket.reset(),
            Some(End::Refuse(pause)) => {
                stage.go_down(pause);
                return socket.reset();
            }
            Some(End::Hang) | None => return,
        }
    }
}

/// One attempt; how the connection goes on, or `None` when the client has left.
async fn attempt(
    socket: &mut Socket,
    stage: &Arc<Stage>,
    head: &Head,
    dialect: Dialect,
    reused: bool,
) -> Option<End> {
    let running = stage.begin(&head.path, &head.key);
    let drawn = stage.draw_early(&head.key, reused);
    if let Some(draw) = &drawn {
        running.meets(&draw.mode);
    }
    let (mut draw, asked) = match drawn {
        Some(early @ Draw { mode: Mode::Early(_), .. }) => (early, None),
        drawn => {
            let expects = head.expects && !drawn.as_ref().is_some_and(|draw| draw.mode == Mode::NoContinue);
            let Some(body) = body(socket, head, expects).await else {
                running.note(|attempt| attempt.client_closed = true);
                return None;
            };
            let asked = Asked::read(dialect, &body);
            let model = asked.as_ref().map_or("", |asked| asked.model.as_str());
            let mut draw = drawn.unwrap_or_else(|| stage.draw(&head.key, model, reused));
            if asked.is_none() {
                draw.mode = Mode::Status(Status::of(400));
            }
            (draw, asked)
        }
    };
    let asked = asked.unwrap_or_else(|| Asked::nothing(dialect));
    running.meets(&draw.mode);
    running.note(|attempt| attempt.asks(&asked));
    let draft = running.compose(&mut draw, &asked);
    let status = draft.head.as_ref().map(|head| head.status);
    let plan = Plan::of(draft);
    let stayed = socket.carry_out(&plan, &running.sent).await;
    running.note(|attempt| {
        attempt.status = status.filter(|_| running.sent.load(Ordering::Relaxed) > 0);
        attempt.client_closed = !stayed;
    });
    stayed.then_some(plan.end)
}

/// The body, asked for when the client waits to be asked; `None` when it never comes.
async fn body(socket: &mut Socket, head: &Head, expects: bool) -> Option<Bytes> {
    if expects && !socket.say(CONTINUE).await {
        return None;
    }
    request::body(socket, head).await
}

/// A call to the server itself.
async fn control(socket: &mut Socket, stage: &Stage, head: &Head) -> Option<End> {
    let body = body(socket, head, head.expects).await?;
    let plan = Plan::of(control::answer(stage, &head.method, &head.path, &body));
    socket.carry_out(&plan, &AtomicU64::new(0)).await.then_some(plan.end)
}
