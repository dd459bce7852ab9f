//! The server's own calls: look at what was tried, change the scene.
//!
//! No mode touches them, but for those that strike before a request is read: at that time
//! nobody knows who calls. Nobody is asked who they are: this server belongs on a loopback
//! address or in a closed network.

use super::draft::Draft;
use super::script::Rules;
use super::stage::Stage;

const NOT_HERE: &str = "There is POST …/chat/completions and POST …/messages, GET and DELETE /chaos/attempts, \
                        GET and POST /chaos/mode.\n";

/// The answer to a call that is not for a model.
///
/// - `GET /chaos/attempts`: the attempts as a JSON list; `DELETE` forgets them.
/// - `GET /chaos/mode`: the rules that hold; `POST` sets those of the body, from now on and
///   from their beginning, and answers 400 with the reason when it cannot.
pub(super) fn answer(stage: &Stage, method: &str, path: &str, body: &[u8]) -> Draft {
    match (method, path) {
        ("GET", "/chaos/attempts") => {
            let attempts = serde_json::to_vec(&stage.attempts()).expect("attempts are plain data");
            Draft::whole(200, "application/json", attempts)
        }
        ("DELETE", "/chaos/attempts") => {
            stage.forget();
            text(200, String::new())
        }
        ("GET", "/chaos/mode") => text(200, stage.rules().to_string()),
        ("POST", "/chaos/mode") => match String::from_utf8_lossy(body).parse::<Rules>() {
            Ok(rules) => {
                stage.play(rules.clone());
                text(200, rules.to_string())
            }
            Err(error) => text(400, error.to_string()),
        },
        _ => Draft::whole(404, "text/plain; charset=utf-8", NOT_HERE),
    }
}

fn text(status: u16, text: String) -> Draft {
    Draft::whole(status, "text/plain; charset=utf-8", text + "\n")
}
