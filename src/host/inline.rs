//! A task that may also be polled by a thread outside of the runtime.
//!
//! A tool callback that answers on the JavaScript thread would normally wake a runtime thread, which goes on with the
//! request and wakes the JavaScript thread again: two thread wake-ups of 20 to 45 µs each. Polling the request right
//! where the answer arrived needs none. The caller bounds how often it does so.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tracing::Span;

use super::runtime::Tasks;

/// Somebody is about to poll in place; wakes are theirs to notice.
const INLINE: u8 = 1;
/// The task was woken and not polled since.
const WOKEN: u8 = 2;

type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Shared {
    /// `None` once the future has finished.
    future: Mutex<Option<BoxedTask>>,
    flags: AtomicU8,
    notify: Notify,
    /// Where the task was started; whoever polls it speaks from there.
    span: Span,
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // One atomic holds both flags, so a wake is seen either by the inline poller when it leaves or by the runner.
        if self.flags.fetch_or(WOKEN, Ordering::AcqRel) == 0 {
            self.notify.notify_one();
        }
    }
}

/// Handle of such a task.
#[derive(Clone)]
pub struct InlineTask {
    shared: Arc<Shared>,
    handle: Handle,
}

impl InlineTask {
    /// Spawns `work` on the runtime, tracked by `tasks`.
    pub fn spawn(tasks: &Tasks, handle: &Handle, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            future: Mutex::new(Some(Box::pin(work))),
            flags: AtomicU8::new(WOKEN),
            notify: Notify::new(),
            span: Span::current(),
        });
        shared.notify.notify_one();
        let runner = Arc::clone(&shared);
        tasks.spawn_on(
            async move {
                loop {
                    runner.notify.notified().await;
                    let mut slot = runner.future.lock().unwrap_or_else(PoisonError::into_inner);
                    if poll(&runner, &mut slot) {
                        return;
                    }
                }
            },
            handle,
        );
        Self { shared, handle: handle.clone() }
    }

    /// Runs `answer`, which may wake the task, and then polls the task on this thread up to `budget` times while it is
    /// woken. What is left goes to the runtime. Returns how many polls were used.
    pub fn poll_after(&self, budget: u32, answer: impl FnOnce()) -> u32 {
        self.shared.flags.fetch_or(INLINE, Ordering::AcqRel);
        answer();
        let mut used = 0;
        let _context = self.handle.enter();
        while used < budget && self.shared.flags.load(Ordering::Acquire) & WOKEN != 0 {
            let finished = match self.shared.future.try_lock() {
                Ok(mut slot) => poll(&self.shared, &mut slot),
                Err(TryLockError::Poisoned(poisoned)) => poll(&self.shared, &mut poisoned.into_inner()),
                // The runtime is polling it right now; the wake is handed to it below.
                Err(TryLockError::WouldBlock) => break,
            };
            used += 1;
            if finished {
                break;
            }
        }
        let before = self.shared.flags.fetch_and(!INLINE, Ordering::AcqRel);
        let finished = matches!(self.shared.future.try_lock().as_deref(), Ok(None));
        if before & WOKEN != 0 || finished {
            // Either there is work left for the runner, or it has to see that the future is done.
            self.shared.notify.notify_one();
        }
        used
    }
}

/// Polls once; `true` when the future has finished. A panic finishes it: it may not be polled again, and the thread that
/// polls may be the caller's own.
fn poll(shared: &Arc<Shared>, slot: &mut Option<BoxedTask>) -> bool {
    let Some(future) = slot else { return true };
    let _inside = shared.span.enter();
    shared.flags.fetch_and(!WOKEN, Ordering::AcqRel);
    let waker = Waker::from(Arc::clone(shared));
    let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
    match polled {
        Ok(Poll::Pending) => false,
        Ok(Poll::Ready(())) => {
            *slot = None;
            true
        }
        Err(_) => {
            tracing::error!("a request task panicked; this is a bug of the package");
            *slot = None;
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread::ThreadId;

    use super::*;
    use tokio::sync::{mpsc, oneshot};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_answer_on_a_foreign_thread_continues_the_task_there() {
        let tasks = Tasks::new();
        let (sender, receiver) = oneshot::channel::<()>();
        let (seen, mut threads) = mpsc::unbounded_channel::<ThreadId>();
        let (parked, waiting) = oneshot::channel::<()>();
        let task = InlineTask::spawn(&tasks, &Handle::current(), async move {
            parked.send(()).unwrap();
            receiver.await.unwrap();
            seen.send(std::thread::current().id()).unwrap();
        });
        waiting.await.unwrap();
        // The task signals just before it parks; the lock shows when its poll is over.
        drop(task.shared.future.lock().unwrap());
        let foreign = std::thread::spawn(move || {
            let used = task.poll_after(4, || sender.send(()).unwrap());
            (used, std::thread::current().id())
        });
        let (used, foreign_id) = foreign.join().unwrap();
        assert_eq!(used, 1);
        assert_eq!(threads.recv().await, Some(foreign_id));
        tasks.drained().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_panic_ends_the_task_and_not_the_thread_that_polls_it() {
        let tasks = Tasks::new();
        let (sender, receiver) = oneshot::channel::<()>();
        let task = InlineTask::spawn(&tasks, &Handle::current(), async move {
            receiver.await.unwrap();
            panic!("the work is broken");
        });
        let polled = task.clone();
        std::thread::spawn(move || polled.poll_after(4, || sender.send(()).unwrap())).join().unwrap();
        tasks.drained().await;
        assert_eq!(task.poll_after(4, || {}), 0, "nothing is left to poll");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn wakes_from_all_sides_are_never_lost() {
        for _ in 0..200 {
            let tasks = Tasks::new();
            let (sender, mut receiver) = mpsc::unbounded_channel::<u32>();
            let sum = Arc::new(AtomicU32::new(0));
            let total = sum.clone();
            let task = InlineTask::spawn(&tasks, &Handle::current(), async move {
                while let Some(n) = receiver.recv().await {
                    total.fetch_add(n, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            });
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    let (sender, task) = (sender.clone(), task.clone());
                    std::thread::spawn(move || {
                        for _ in 0..20 {
                            task.poll_after(2, || sender.send(1).unwrap());
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            drop(sender);
            tasks.drained().await;
            assert_eq!(sum.load(Ordering::Relaxed), 60);
        }
    }
}
