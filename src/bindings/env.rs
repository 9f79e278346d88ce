//! One JavaScript environment (the main thread or a worker): its wake, and the mailboxes that have something to say.
//!
//! One threadsafe function an environment, not one a Session: opening a Session costs no handle of the event loop, and
//! a wake does not walk the handles of all other Sessions. It only wakes; content is drained by one call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use napi::bindgen_prelude::{External, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, Status};
use napi_derive::napi;

use super::mailbox::Mailbox;
use crate::tools;

type Wake = ThreadsafeFunction<(), (), (), Status, false, true, 0>;

#[derive(Default)]
struct State {
    ready: Vec<Arc<Mailbox>>,
    boxes: HashMap<u32, Weak<Mailbox>>,
    woken: bool,
    closed: bool,
}

/// The port of one environment.
pub struct EnvPort {
    state: Mutex<State>,
    wake: Wake,
}

impl EnvPort {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A mailbox under a key chosen by the facade.
    pub fn open(self: &Arc<Self>, key: u32) -> Arc<Mailbox> {
        let mailbox = Arc::new(Mailbox::new(key, Arc::clone(self)));
        let mut state = self.lock();
        if state.closed {
            mailbox.close();
        }
        state.boxes.insert(key, Arc::downgrade(&mailbox));
        mailbox
    }

    /// Forgets a mailbox.
    pub fn forget(&self, key: u32) {
        self.lock().boxes.remove(&key);
    }

    /// A mailbox has something to say; wakes JavaScript unless a wake is already under way.
    pub fn announce(&self, mailbox: Arc<Mailbox>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.ready.push(mailbox);
        if !std::mem::replace(&mut state.woken, true) {
            drop(state);
            // Anything but `Ok` means that the environment is ending; its cleanup hook closes every mailbox.
            self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// JavaScript is here and will drain: no wake is needed meanwhile. `false` when one is under way already.
    pub fn hold_wake(&self) -> bool {
        !std::mem::replace(&mut self.lock().woken, true)
    }

    /// Ends [`EnvPort::hold_wake`]; `true` when JavaScript has to drain now.
    pub fn release_wake(&self) -> bool {
        let mut state = self.lock();
        if state.ready.is_empty() {
            state.woken = false;
            return false;
        }
        true
    }

    /// Everything that was said since the last time, as `[[key, entry, …], …]`.
    fn drain(&self) -> String {
        let mut state = self.lock();
        state.woken = false;
        let ready = std::mem::take(&mut state.ready);
        drop(state);
        let mut text = String::with_capacity(64);
        text.push('[');
        for mailbox in ready {
            mailbox.drain_into(&mut text);
        }
        text.push(']');
        text
    }

    fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.ready.clear();
        let boxes: Vec<_> = state.boxes.drain().filter_map(|(_, mailbox)| mailbox.upgrade()).collect();
        drop(state);
        for mailbox in boxes {
            mailbox.close();
        }
    }
}

/// What the facade holds for its environment.
pub struct NativeEnv {
    /// The port.
    pub port: Arc<EnvPort>,
}

/// Registers an environment. `wake` is called without arguments, on the JavaScript thread, when `drain` has something.
/// It keeps no process alive.
#[napi(catch_unwind)]
pub fn attach(env: Env, wake: Function<(), ()>) -> napi::Result<External<NativeEnv>> {
    let wake: Wake = wake.build_threadsafe_function().callee_handled::<false>().weak::<true>().build()?;
    let port = Arc::new(EnvPort { state: Mutex::default(), wake });
    let ending = Arc::downgrade(&port);
    env.add_env_cleanup_hook(ending, |ending: Weak<EnvPort>| {
        if let Some(port) = ending.upgrade() {
            port.close();
        }
    })?;
    Ok(External::new(NativeEnv { port }))
}

/// Everything the mailboxes of this environment have to say, as JSON text.
#[napi(catch_unwind)]
pub fn drain(env: &External<NativeEnv>) -> String {
    env.port.drain()
}

/// The environment is ending (its `exit` event): nothing is delivered any more. At the end of the process every child
/// process of a tool is killed: nobody would be left to do it.
#[napi(catch_unwind)]
pub fn detach(env: &External<NativeEnv>, process_ends: bool) {
    env.port.close();
    if process_ends {
        tools::kill_all();
    }
}
