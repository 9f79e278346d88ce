//! Compiled schemas of the process by their text, so that opening a Session with known tools compiles nothing.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use super::Schema;

/// Enough for the tools of several servers at once; a compiled schema takes some ten kilobytes.
const CAPACITY: usize = 512;

static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(|| Mutex::new(Cache::new(CAPACITY)));

/// A map that forgets what was used least recently.
pub(super) struct Cache {
    entries: HashMap<Key, Entry>,
    capacity: usize,
    clock: u64,
}

struct Entry {
    schema: Arc<Schema>,
    used: u64,
}

/// A schema standing for its own text, so that the text is stored once.
#[derive(Clone)]
struct Key(Arc<Schema>);

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        self.0.text()
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.text() == other.0.text()
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.text().hash(state);
    }
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self { entries: HashMap::new(), capacity, clock: 0 }
    }

    pub(super) fn get(&mut self, text: &str) -> Option<Arc<Schema>> {
        self.clock += 1;
        let entry = self.entries.get_mut(text)?;
        entry.used = self.clock;
        Some(Arc::clone(&entry.schema))
    }

    /// Stores `schema` unless its text is known already, and returns the stored one.
    pub(super) fn insert(&mut self, schema: Arc<Schema>) -> Arc<Schema> {
        if let Some(known) = self.get(schema.text()) {
            return known;
        }
        if self.entries.len() >= self.capacity {
            // A scan of a few hundred entries beside a compilation that costs a hundred times more.
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone());
            if let Some(key) = oldest {
                self.entries.remove(&key);
            }
        }
        self.entries.insert(Key(Arc::clone(&schema)), Entry { schema: Arc::clone(&schema), used: self.clock });
        schema
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

fn lock() -> MutexGuard<'static, Cache> {
    // The map is consistent between any two statements above, so a panic elsewhere does not spoil it.
    CACHE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn get(text: &str) -> Option<Arc<Schema>> {
    lock().get(text)
}

pub(super) fn insert(schema: Arc<Schema>) -> Arc<Schema> {
    lock().insert(schema)
}
