//! What each Session has seen of each file: the memory behind "read before write".
//!
//! The records are process-wide, because a file is; they are keyed by Session and canonical path. Forgetting one costs
//! a Session no more than another Read.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::place::Stat;

/// Records kept; the one written longest ago goes first.
const MAX_RECORDS: usize = 1000;
/// A record nobody asked for during this time no longer counts.
const TIME_TO_LIVE: Duration = Duration::from_secs(60 * 60);

/// SHA-256 of a file's bytes (never of decoded text: two different byte sequences can decode to the same text).
pub type ContentHash = [u8; 32];

/// The state of a file when it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fingerprint {
    /// Facts from the file system.
    pub stat: Stat,
    /// Hash of the content; `None` when the file was too large to be read to its end.
    pub hash: Option<ContentHash>,
}

impl Fingerprint {
    /// Says what differs in `now`, or `None` when it is the same file with the same content.
    pub fn difference(&self, now: &Self) -> Option<String> {
        let (old, new) = (&self.stat, &now.stat);
        if (old.device, old.inode) != (new.device, new.inode) {
            return Some("another file has taken its place".to_owned());
        }
        if old.size != new.size {
            return Some(format!("its size changed from {} to {} bytes", old.size, new.size));
        }
        if old.modified_ns != new.modified_ns {
            return Some("its modification time changed".to_owned());
        }
        match (self.hash, now.hash) {
            (Some(old), Some(new)) if old != new => Some("its content changed".to_owned()),
            (Some(_), Some(_)) => None,
            // Without a hash the change time has to do: it also moves with a chmod, but nothing can set it back.
            _ if old.changed_ns != new.changed_ns => Some("its change time changed".to_owned()),
            _ => None,
        }
    }
}

/// Hash of content that is in memory.
pub fn hash(bytes: &[u8]) -> ContentHash {
    Sha256::digest(bytes).into()
}

struct Record {
    fingerprint: Fingerprint,
    used: Instant,
    order: u64,
}

/// A bounded set of records.
#[derive(Default)]
pub struct Records {
    by_session: HashMap<String, HashMap<PathBuf, Record>>,
    count: usize,
    next_order: u64,
}

impl Records {
    /// Remembers the state in which a Session has seen a file.
    pub fn store(&mut self, session: &str, path: &Path, fingerprint: Fingerprint) {
        let record = Record { fingerprint, used: Instant::now(), order: self.next_order };
        self.next_order += 1;
        if self.by_session.entry(session.to_owned()).or_default().insert(path.to_owned(), record).is_none() {
            self.count += 1;
        }
        if self.count > MAX_RECORDS {
            self.prune();
        }
    }

    /// The state in which a Session has last seen a file.
    pub fn find(&mut self, session: &str, path: &Path) -> Option<Fingerprint> {
        let files = self.by_session.get_mut(session)?;
        let record = files.get_mut(path)?;
        let now = Instant::now();
        if now.duration_since(record.used) >= TIME_TO_LIVE {
            files.remove(path);
            self.count -= 1;
            return None;
        }
        record.used = now;
        Some(record.fingerprint.clone())
    }

    /// Forgets all a Session has seen.
    pub fn forget(&mut self, session: &str) {
        self.count -= self.by_session.remove(session).map_or(0, |files| files.len());
    }

    /// Drops what is too old; if nothing is, the record written longest ago.
    fn prune(&mut self) {
        let now = Instant::now();
        for files in self.by_session.values_mut() {
            files.retain(|_, record| now.duration_since(record.used) < TIME_TO_LIVE);
        }
        self.count = self.by_session.values().map(HashMap::len).sum();
        while self.count > MAX_RECORDS {
            let records = self.by_session.iter().flat_map(|(session, files)| files.iter().map(move |it| (session, it)));
            let oldest = records.min_by_key(|(_, (_, record))| record.order);
            let Some((session, path)) = oldest.map(|(session, (path, _))| (session.clone(), path.clone())) else {
                break;
            };
            if let Some(files) = self.by_session.get_mut(&session) {
                files.remove(&path);
            }
            self.count -= 1;
        }
        self.by_session.retain(|_, files| !files.is_empty());
    }
}

/// The records of this process.
pub fn records() -> MutexGuard<'static, Records> {
    static RECORDS: LazyLock<Mutex<Records>> = LazyLock::new(Mutex::default);
    // A panic while the lock was held leaves at worst a wrong count of records.
    RECORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::place::Kind;
    use super::*;

    fn fingerprint(size: u64) -> Fingerprint {
        let stat = Stat {
            kind: Kind::File,
            device: 1,
            inode: 2,
            size,
            modified_ns: 3,
            changed_ns: 4,
            mode: 0o644,
            owner: (0, 0),
            links: 1,
        };
        Fingerprint { stat, hash: Some(hash(b"x")) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_belongs_to_one_session_and_ends_an_hour_after_its_last_use() {
        let mut records = Records::default();
        let path = Path::new("/a");
        records.store("one", path, fingerprint(1));
        assert_eq!(records.find("two", path), None);
        tokio::time::advance(TIME_TO_LIVE - Duration::from_secs(1)).await;
        assert_eq!(records.find("one", path), Some(fingerprint(1)));
        tokio::time::advance(TIME_TO_LIVE - Duration::from_secs(1)).await;
        assert!(records.find("one", path).is_some());
        tokio::time::advance(TIME_TO_LIVE).await;
        assert_eq!(records.find("one", path), None);
        assert_eq!(records.count, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_record_written_longest_ago_makes_room() {
        let mut records = Records::default();
        let path = |n: usize| PathBuf::from(format!("/{n}"));
        for n in 0..MAX_RECORDS {
            records.store("s", &path(n), fingerprint(1));
        }
        records.store("s", &path(0), fingerprint(2));
        records.store("other", &path(0), fingerprint(3));
        assert_eq!(records.find("s", &path(1)), None);
        assert_eq!(records.find("s", &path(0)), Some(fingerprint(2)));
        assert_eq!(records.count, MAX_RECORDS);
        records.forget("s");
        assert_eq!(records.count, 1);
        assert_eq!(records.find("s", &path(0)), None);
        assert_eq!(records.find("other", &path(0)), Some(fingerprint(3)));
    }

    #[test]
    fn a_difference_is_any_of_identity_size_time_and_content_but_not_a_chmod() {
        let old = fingerprint(1);
        let changed = |change: fn(&mut Fingerprint)| {
            let mut new = old.clone();
            change(&mut new);
            old.difference(&new)
        };
        assert_eq!(changed(|_| {}), None);
        assert_eq!(changed(|it| it.stat.changed_ns += 1), None);
        assert!(changed(|it| it.stat.inode += 1).is_some());
        assert!(changed(|it| it.stat.size += 1).is_some());
        assert!(changed(|it| it.stat.modified_ns += 1).is_some());
        assert!(changed(|it| it.hash = Some(hash(b"y"))).is_some());
        assert_eq!(changed(|it| it.hash = None), None);
        let no_hash = |it: &mut Fingerprint| (it.hash, it.stat.changed_ns) = (None, 9);
        let mut new = old.clone();
        no_hash(&mut new);
        assert!(old.difference(&new).is_some());
    }
}
