//! Visiting a tree: in this thread while it is small, on all processors once it is not.
//!
//! A thread costs more than a small tree, so the first entries are listed here; only a tree that has more of them, or
//! files that take long, gets helpers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use ignore::{DirEntry, WalkBuilder, WalkState};

use super::stop::Stop;

/// Trees up to this many entries are listed by one thread, which takes less than a millisecond.
const SMALL_TREE: usize = 256;
/// More threads than this fight for the kernel's directory cache; ripgrep has the same limit.
const MAX_THREADS: usize = 12;
/// Warnings kept; the rest is counted.
const MAX_WARNINGS: usize = 20;

/// One thread's part of a search.
pub(super) trait Visitor: Send {
    /// An entry below the root.
    fn visit(&mut self, entry: &DirEntry);
    /// Something could not be read; the walk goes on.
    fn warn(&mut self, text: String);
    /// Whether this visitor has worked so much that helpers pay off.
    fn wants_help(&self) -> bool {
        false
    }
}

/// What could not be read.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    /// The first ones.
    pub(super) texts: Vec<String>,
    /// All of them.
    pub(super) count: usize,
}

impl Warnings {
    pub(super) fn push(&mut self, text: String) {
        self.count += 1;
        if self.texts.len() < MAX_WARNINGS {
            self.texts.push(text);
        }
    }

    /// Takes those of another thread. Sorted, so that the order of threads does not show.
    pub(super) fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.texts.extend(other.texts);
        self.texts.sort_unstable();
        self.texts.truncate(MAX_WARNINGS);
    }
}

/// Visits every entry below the root of `builder`, in no particular order, until the flag is set. Gives the visitors.
pub(super) fn walk<V: Visitor>(builder: &mut WalkBuilder, stop: &Stop, make: impl Fn() -> V + Sync) -> Vec<V> {
    let Some(listed) = list_small(builder, stop) else { return walk_large(builder, stop, make) };
    visit_listed(&listed, stop, make)
}

/// The entries of a small tree; `None` once there are too many.
///
/// The parallel walker with one thread does this with a fifth of the system calls of the serial one: it takes from the
/// listing which ignore files a directory has, where the other asks for each of them by name.
fn list_small(builder: &mut WalkBuilder, stop: &Stop) -> Option<Vec<Result<DirEntry, ignore::Error>>> {
    let (listed, entries) = std::sync::mpsc::channel();
    let count = AtomicUsize::new(0);
    builder.threads(1).build_parallel().run(|| {
        let listed = listed.clone();
        let count = &count;
        Box::new(move |entry| {
            if stop.is_set() || count.fetch_add(1, Ordering::Relaxed) >= SMALL_TREE || listed.send(entry).is_err() {
                return WalkState::Quit;
            }
            WalkState::Continue
        })
    });
    drop(listed);
    (count.into_inner() <= SMALL_TREE).then(|| entries.into_iter().collect())
}

fn deliver<V: Visitor>(visitor: &mut V, entry: &Result<DirEntry, ignore::Error>) {
    match entry {
        Ok(entry) if entry.depth() == 0 => {}
        Ok(entry) => visitor.visit(entry),
        Err(error) => visitor.warn(error.to_string()),
    }
}

fn visit_listed<V: Visitor>(
    listed: &[Result<DirEntry, ignore::Error>],
    stop: &Stop,
    make: impl Fn() -> V + Sync,
) -> Vec<V> {
    let next = AtomicUsize::new(0);
    let take = || if stop.is_set() { None } else { listed.get(next.fetch_add(1, Ordering::Relaxed)) };
    let mut first = make();
    while let Some(entry) = take() {
        deliver(&mut first, entry);
        if first.wants_help() {
            break;
        }
    }
    let left = listed.len().saturating_sub(next.load(Ordering::Relaxed));
    if left == 0 || stop.is_set() {
        return vec![first];
    }
    thread::scope(|scope| {
        let mut helpers = Vec::new();
        for _ in 1..threads().min(left) {
            let work = || {
                let mut visitor = make();
                while let Some(entry) = take() {
                    deliver(&mut visitor, entry);
                }
                visitor
            };
            // Without helpers the work is only slower.
            let Ok(helper) = thread::Builder::new().name("blade-search".into()).spawn_scoped(scope, work) else {
                break;
            };
            helpers.push(helper);
        }
        while let Some(entry) = take() {
            deliver(&mut first, entry);
        }
        let mut visitors = vec![first];
        for helper in helpers {
            match helper.join() {
                Ok(visitor) => visitors.push(visitor),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        visitors
    })
}

fn walk_large<V: Visitor>(builder: &mut WalkBuilder, stop: &Stop, make: impl Fn() -> V + Sync) -> Vec<V> {
    let (done, visitors) = std::sync::mpsc::channel();
    builder.threads(threads()).build_parallel().run(|| {
        let mut visitor = SendOnDrop { visitor: Some(make()), done: done.clone() };
        Box::new(move |entry| {
            if stop.is_set() {
                return WalkState::Quit;
            }
            if let Some(visitor) = &mut visitor.visitor {
                deliver(visitor, &entry);
            }
            WalkState::Continue
        })
    });
    drop(done);
    visitors.into_iter().collect()
}

/// The walker owns the visitors and drops them when it ends; this is how they come back.
struct SendOnDrop<V> {
    visitor: Option<V>,
    done: std::sync::mpsc::Sender<V>,
}

impl<V> Drop for SendOnDrop<V> {
    fn drop(&mut self) {
        if let Some(visitor) = self.visitor.take() {
            // The receiver outlives the walk.
            let _ = self.done.send(visitor);
        }
    }
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_bounded_sorted_and_counted() {
        let (mut one, mut other) = (Warnings::default(), Warnings::default());
        for i in 0..30 {
            one.push(format!("b{i:02}"));
        }
        other.push("a".into());
        one.merge(other);
        assert_eq!((one.count, one.texts.len(), one.texts[0].as_str()), (31, MAX_WARNINGS, "a"));
    }
}
