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

/// Something to do with a worker's model.
type Job<M> = Box<dyn FnOnce(&mut M) + Send>;

/// The workers and their queue.
pub(super) struct Pool<M> {
    /// `None` once the pool closes.
    queue: Option<SyncSender<Job<M>>>,
    workers: Vec<JoinHandle<()>>,
    timeout: Duration,
}

impl<M: Send + 'static> Pool<M> {
    /// A worker for each model. `queue` jobs wait at most; `timeout` runs from the call.
    pub(super) fn try_new(models: Vec<M>, queue: usize, timeout: Duration) -> std::io::Result<Self> {
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

    /// What `work` makes of a model. A full queue is refused at once. Work whose caller has left,
    /// by timeout or by dropping the future, is skipped unless a worker has begun it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut M) -> Result<T, EmbedError> + Send + 'static,
    ) -> Result<T, EmbedError> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |model: &mut M| {
            if !answer.is_closed() {
                // The caller may leave meanwhile.
                let _ = answer.send(caught(|| work(model)));
            }
        });
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.try_send(job).map_err(|error| match error {
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

impl<M> Drop for Pool<M> {
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

fn work<M>(mut model: M, queue: &Mutex<Receiver<Job<M>>>) {
    loop {
        // One worker waits for a job, the others for their turn to wait.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        job(&mut model);
    }
}

fn caught<T>(work: impl FnOnce() -> Result<T, EmbedError>) -> Result<T, EmbedError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        tracing::error!("an embedding worker panicked; it goes on with the next text");
        Err(EmbedError::Failed("the worker panicked".into()))
    })
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

    impl Scripted {
        #[expect(clippy::unnecessary_wraps, reason = "the pool runs work that may fail")]
        fn embed(&mut self, text: &str) -> Result<Vec<f32>, EmbedError> {
            self.asked.send(text.to_owned()).unwrap();
            let answer = self.answers.lock().unwrap().recv().unwrap();
            Ok(vec![answer.expect("the worker panics, as the test wants it to")])
        }
    }

    struct Script {
        pool: Pool<Scripted>,
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
        assert_eq!(script.pool.run(|model| model.embed("a")).await.unwrap(), [0.5]);
        assert_eq!(script.asked.recv().unwrap(), "a");
    }

    #[tokio::test]
    async fn a_full_queue_is_refused_at_once() {
        let script = script(1);
        let mut under_way = Box::pin(script.pool.run(|model| model.embed("under way")));
        assert!(under_way.as_mut().now_or_never().is_none());
        assert_eq!(script.asked.recv().unwrap(), "under way");
        let mut waits = Box::pin(script.pool.run(|model| model.embed("waits")));
        assert!(waits.as_mut().now_or_never().is_none());
        let refused = script.pool.run(|model| model.embed("refused")).now_or_never();
        assert!(matches!(refused, Some(Err(EmbedError::Busy))));
        script.answers.send(Some(1.0)).unwrap();
        script.answers.send(Some(2.0)).unwrap();
        assert_eq!(under_way.await.unwrap(), [1.0]);
        assert_eq!(waits.await.unwrap(), [2.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn text_whose_caller_has_left_is_skipped() {
        let script = script(2);
        let mut late = Box::pin(script.pool.run(|model| model.embed("late")));
        assert!(late.as_mut().now_or_never().is_none());
        assert_eq!(script.asked.recv().unwrap(), "late");
        assert!(matches!(late.await, Err(EmbedError::TimedOut)));
        let mut left = Box::pin(script.pool.run(|model| model.embed("left")));
        assert!(left.as_mut().now_or_never().is_none());
        drop(left);
        script.answers.send(Some(0.0)).unwrap();
        script.answers.send(Some(3.0)).unwrap();
        tokio::time::resume();
        assert_eq!(script.pool.run(|model| model.embed("wanted")).await.unwrap(), [3.0]);
        assert_eq!(script.asked.recv().unwrap(), "wanted");
    }

    #[tokio::test]
    async fn a_panic_costs_one_answer_not_a_worker() {
        let script = script(1);
        script.answers.send(None).unwrap();
        script.answers.send(Some(1.0)).unwrap();
        assert!(matches!(script.pool.run(|model| model.embed("panics")).await, Err(EmbedError::Failed(_))));
        assert_eq!(script.pool.run(|model| model.embed("works")).await.unwrap(), [1.0]);
    }
}
