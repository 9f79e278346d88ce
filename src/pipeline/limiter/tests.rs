use std::fs;
use std::path::PathBuf;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::names::{Answer, FileName, Identity, Names};
use super::*;
use crate::host::CancelReason;

const fn writing(path: &Path) -> Option<FileUse<'_>> {
    Some(FileUse { path, shared: false })
}

#[cfg(unix)]
#[tokio::test(start_paused = true)]
async fn all_names_of_a_file_share_one_lock_also_when_it_is_made_or_replaced_meanwhile() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("real")).unwrap();
    symlink("real", at("link")).unwrap();
    fs::write(at("real/file"), "").unwrap();
    fs::hard_link(at("real/file"), at("real/other name")).unwrap();
    fs::hard_link(at("real/file"), at("real/third name")).unwrap();
    let limiter = ToolLimiter::new(Limits { execute: 10, ..Limits::default() });
    let cancel = CancelToken::new();
    let waits = async |path: PathBuf| {
        let mut asking = std::pin::pin!(limiter.acquire(ToolKind::Execute, writing(&path), &cancel));
        // Virtual time, which stands still while a path is looked up.
        tokio::time::timeout(Duration::from_millis(50), &mut asking).await.is_err()
    };
    for (held, same) in [
        ("real/file", ["link/file", "real/FILE", "real/other name"]),
        ("real/new", ["link/new", "real/NEW", "link/../real/new"]),
        ("real/other name", ["link/other name", "link/third name", "real/third name"]),
    ] {
        let path = at(held);
        let lease = limiter.acquire(ToolKind::Execute, writing(&path), &cancel).await.unwrap();
        for name in same {
            assert!(waits(at(name)).await, "{name} beside {held}");
        }
        assert!(!waits(at("real/unrelated")).await);
        // Replaced as the file tools do it, or made for the first time.
        fs::write(at("temporary"), "").unwrap();
        fs::rename(at("temporary"), &path).unwrap();
        assert!(waits(at(same[0])).await, "{} beside {held} that was replaced", same[0]);
        drop(lease);
        assert!(!waits(at(same[0])).await);
    }
    assert_eq!(limiter.files.in_use(), 0);
}

/// A network file system that hangs below `/hung`.
struct Hung;

impl Names for Hung {
    fn name(&self, path: &Path) -> Answer<FileName> {
        let name = FileName::as_written(path);
        if path.starts_with("/hung") { Answer::Later(Box::pin(std::future::pending())) } else { Answer::Now(name) }
    }

    fn identity(&self, _: &FileName) -> Answer<Option<Identity>> {
        Answer::Now(None)
    }
}

#[tokio::test(start_paused = true)]
async fn a_file_system_that_hangs_holds_up_its_own_files_only() {
    let limiter = ToolLimiter::with_files(Limits::default(), FileLocks::with_names(Arc::new(Hung)));
    let cancel = CancelToken::new();
    let started = Instant::now();
    let ask = async |path: &str| {
        let outcome = limiter.acquire(ToolKind::Write, writing(Path::new(path)), &cancel).await.map(drop);
        (outcome, started.elapsed().as_secs())
    };
    let (hung, first, second) = tokio::join!(ask("/hung/a"), ask("/fine/a"), ask("/fine/a"));
    assert_eq!(hung, (Err(Denied::FileBusy), 30));
    assert_eq!((first, second), ((Ok(()), 1), (Ok(()), 1)));
    assert_eq!(limiter.files.in_use(), 0);
}

#[tokio::test(start_paused = true)]
async fn users_of_a_shared_limiter_take_turns_and_the_last_one_frees_it() {
    let limiter = Arc::new(ToolLimiter::new(Limits { execute: 1, queue: 3, ..Limits::default() }));
    let [one, other] = [CancelToken::new(), CancelToken::new()];
    let held = limiter.acquire(ToolKind::Execute, None, &one).await.unwrap();
    let order = std::sync::Mutex::new(Vec::new());
    let waiting = [&one, &other, &one].into_iter().enumerate().map(async |(at, user)| {
        let lease = limiter.acquire(ToolKind::Execute, None, user).await;
        order.lock().unwrap().push((at, lease.as_ref().err().copied()));
    });
    let closing = async {
        assert_eq!(limiter.acquire(ToolKind::Execute, None, &other).await.err(), Some(Denied::QueueFull(3)));
        // The first user goes, with what it holds and with what it waits for; the second one does not notice.
        one.cancel(CancelReason::Close);
        drop(held);
    };
    tokio::join!(join_all(waiting), closing);
    let mut order = order.into_inner().unwrap();
    order.sort_unstable_by_key(|(at, _)| *at);
    assert_eq!(order, [(0, Some(Denied::Cancelled)), (1, None), (2, Some(Denied::Cancelled))]);
    let weak = Arc::downgrade(&limiter);
    drop(limiter);
    assert!(weak.upgrade().is_none());
}
