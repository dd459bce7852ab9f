//! A fixed number of threads that embed, behind a bounded queue.
//!
//! Why threads and not tokio's blocking pool: a model answers one text at a time and computes
//! on one core, so more threads than cores only lengthen every answer, and a queue without
//! bound turns a burst into timeouts for all.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::cache::embedder::EmbedError;

/// What a worker owns and asks for vectors.
pub(super) trait Model: Send + 'static {
    /// The vector of the whole text, of unit length.
    fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

struct Job {
    text: String,
    answer: oneshot::Sender<Result<Vec<f32>, EmbedError>>,
}

/// The workers and their queue.
pub(super) struct Pool {
    /// `None` once the pool closes.
    queue: Option<SyncSender<Job>>,
    workers: Vec<JoinHandle<()>>,
    timeout: Duration,
}

impl Pool {
    /// A worker for each model. `queue` texts wait at most; `timeout` runs from the call.
    pub(super) fn try_new<M: Model>(
        models: Vec<M>,
        queue: usize,
        timeout: Duration,
    ) -> std::io::Result<Self> {
        let (sender, receiver) = sync_channel(queue);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut pool = Self { queue: Some(sender), workers: Vec::new(), timeout };
        for (n, model) in models.into_iter().enumerate() {
            let receiver = Arc::clone(&receiver);
            let worker = std::thread::Builder::new()
                .name(format!("embed-{n}"))
                .spawn(move || work(model, &receiver))?;
            pool.workers.push(worker);
        }
        Ok(pool)
    }

    /// The text's vector. A full queue is refused at once. Text whose caller has left, by
    /// timeout or by dropping the future, is skipped unless a worker has begun it.
    pub(super) async fn embed(&self, text: String) -> Result<Vec<f32>, EmbedError> {
        let (answer, answered) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.try_send(Job { text, answer }).map_err(|error| match error {
            TrySendError::Full(_) => EmbedError::Busy,
            TrySendError::Disconnected(_) => closed(),
        })?;
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(closed()),
            Err(_) => Err(EmbedError::TimedOut),
        }
    }
}

impl Drop for Pool {
    /// Waits for the texts under way (milliseconds): a process that ends while ONNX Runtime
    /// computes may crash.
    fn drop(&mut self) {
        drop(self.queue.take());
        for worker in self.workers.drain(..) {
            // A worker catches its model's panics; should one have died, there is no one to tell.
            let _ = worker.join();
        }
    }
}

fn closed() -> EmbedError {
    EmbedError::Failed("the workers have stopped".into())
}

fn work<M: Model>(mut model: M, queue: &Mutex<Receiver<Job>>) {
    loop {
        // One worker waits for a job, the others for their turn to wait.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        if job.answer.is_closed() {
            continue;
        }
        let answer = catch_unwind(AssertUnwindSafe(|| model.embed(&job.text))).unwrap_or_else(|_| {
            tracing::error!("an embedding worker panicked; it goes on with the next text");
            Err(EmbedError::Failed("the worker panicked".into()))
        });
        // The caller may have left meanwhile.
        let _ = job.answer.send(answer);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use futures_util::FutureExt;

    use super::*;

    /// Takes each answer from the test, and tells it what was asked.
    struct Scripted {
        asked: Sender<String>,
        answers: Arc<Mutex<Receiver<Option<f32>>>>,
    }

    impl Model for Scripted {
        fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError> {
            self.asked.send(text.to_owned()).unwrap();
            let answer = self.answers.lock().unwrap().recv().unwrap();
            Ok(vec![answer.expect("the worker panics, as the test wants it to")])
        }
    }

    struct Script {
        pool: Pool,
        asked: Receiver<String>,
        answers: Sender<Option<f32>>,
    }

    fn script(queue: usize) -> Script {
        let (asked_by, asked) = channel();
        let (answers, answered) = channel();
        let model = Scripted { asked: asked_by, answers: Arc::new(Mutex::new(answered)) };
        Script { pool: Pool::try_new(vec![model], queue, Duration::from_secs(1)).unwrap(), asked, answers }
    }

    #[tokio::test]
    async fn answers() {
        let script = script(1);
        script.answers.send(Some(0.5)).unwrap();
        assert_eq!(script.pool.embed("a".into()).await.unwrap(), [0.5]);
        assert_eq!(script.asked.recv().unwrap(), "a");
    }

    #[tokio::test]
    async fn a_full_queue_is_refused_at_once() {
        let script = script(1);
        let mut under_way = Box::pin(script.pool.embed("under way".into()));
        assert!(under_way.as_mut().now_or_never().is_none());
        assert_eq!(script.asked.recv().unwrap(), "under way");
        let mut waits = Box::pin(script.pool.embed("waits".into()));
        assert!(waits.as_mut().now_or_never().is_none());
        let refused = script.pool.embed("refused".into()).now_or_never();
        assert!(matches!(refused, Some(Err(EmbedError::Busy))));
        script.answers.send(Some(1.0)).unwrap();
        script.answers.send(Some(2.0)).unwrap();
        assert_eq!(under_way.await.unwrap(), [1.0]);
        assert_eq!(waits.await.unwrap(), [2.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn text_whose_caller_has_left_is_skipped() {
        let script = script(2);
        let mut late = Box::pin(script.pool.embed("late".into()));
        assert!(late.as_mut().now_or_never().is_none());
        assert_eq!(script.asked.recv().unwrap(), "late");
        assert!(matches!(late.await, Err(EmbedError::TimedOut)));
        let mut left = Box::pin(script.pool.embed("left".into()));
        assert!(left.as_mut().now_or_never().is_none());
        drop(left);
        script.answers.send(Some(0.0)).unwrap();
        script.answers.send(Some(3.0)).unwrap();
        tokio::time::resume();
        assert_eq!(script.pool.embed("wanted".into()).await.unwrap(), [3.0]);
        assert_eq!(script.asked.recv().unwrap(), "wanted");
    }

    #[tokio::test]
    async fn a_panic_costs_one_answer_not_a_worker() {
        let script = script(1);
        script.answers.send(None).unwrap();
        script.answers.send(Some(1.0)).unwrap();
        assert!(matches!(script.pool.embed("panics".into()).await, Err(EmbedError::Failed(_))));
        assert_eq!(script.pool.embed("works".into()).await.unwrap(), [1.0]);
    }
}
