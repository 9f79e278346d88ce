// The JavaScript side of the mailboxes: one wake for all Sessions of this thread, drained by one call.

import process from 'node:process';
import { isMainThread } from 'node:worker_threads';
import { describe, errorOf } from './errors.js';
import { wellFormed } from './json.js';
import { native } from './native.js';

const CALL = 0;
const ABORT = 1;
const DONE = 2;
const READY = 3;
const LOG = 4;
const FORGET = 5;

/** Timers hold the process; this one never fires in practice and is only referenced while a promise is open. */
const FOREVER_MS = 2 ** 31 - 1;

/** key → WeakRef of the owner. Owners that were collected without being closed are swept when the map has doubled. */
const owners = new Map();
let sweepAt = 256;
let nextKey = 1;
let environment;
let keepAlive;
let holds = 0;
let operations = 0;

/** Owners that must not be collected: something of theirs is awaited. */
const held = new Set();

/** The native side of this thread. */
export function attached() {
  if (environment === undefined) {
    environment = native.attach(() => drain(true));
    process.once('exit', () => native.detach(environment, isMainThread));
  }
  return environment;
}

/** Gives an owner its key. An owner has `dispatch(entry)`, and `refill()` where it polls in place. */
export function register(owner) {
  const key = nextKey++;
  owners.set(key, new WeakRef(owner));
  if (owners.size > sweepAt) {
    for (const [known, ref] of owners) if (ref.deref() === undefined) owners.delete(known);
    sweepAt = Math.max(256, owners.size * 2);
  }
  return key;
}

export const unregister = (key) => owners.delete(key);

/** All registered owners that are alive. */
export function* liveOwners() {
  for (const ref of owners.values()) {
    const owner = ref.deref();
    if (owner !== undefined) yield owner;
  }
}

/** Delivers everything the native side has to say. `woken`: by its wake, so budgets are renewed. */
export function drain(woken) {
  const failures = [];
  for (const [key, ...entries] of JSON.parse(native.drain(environment))) {
    const owner = owners.get(key)?.deref();
    if (owner === undefined) continue;
    if (woken) owner.refill?.();
    for (const entry of entries) {
      // Entries are said once: one that fails must not take the others with it.
      try {
        owner.dispatch(entry);
      } catch (failure) {
        failures.push(failure);
      }
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** Keeps the process and the owner alive until `release` has been called as often. */
export function hold(owner) {
  owner.holds = (owner.holds ?? 0) + 1;
  held.add(owner);
  if (holds++ === 0) {
    keepAlive ??= setInterval(() => {}, FOREVER_MS);
    keepAlive.ref();
  }
}

export function release(owner) {
  if (--owner.holds === 0) held.delete(owner);
  if (--holds === 0) keepAlive.unref();
}

/** Promises of the caller, completed by the mailbox. */
export class Operations {
  #open = new Map();

  /** Runs `begin(id)`; it answers `true` when the operation is done already. Keeps the process alive until then. */
  run(owner, begin) {
    const id = ++operations;
    if (begin(id)) return Promise.resolve();
    hold(owner);
    return this.#opened(id).finally(() => release(owner));
  }

  /** The same for what the caller does not wait for: it keeps neither the process nor the owner alive. */
  runUnheld(begin) {
    const id = ++operations;
    return begin(id) === true ? Promise.resolve() : this.#opened(id);
  }

  #opened(id) {
    return new Promise((resolve, reject) => this.#open.set(id, { resolve, reject }));
  }

  settle([, id, ok, value]) {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (ok) open?.resolve(value);
    else open?.reject(errorOf(value));
  }
}

/** State of the calls of callbacks under way: their lazily made abort controllers. */
export class Calls {
  #open = new Map();

  open(id) {
    const call = { id, controller: undefined, reason: undefined };
    this.#open.set(id, call);
    return call;
  }

  close(id) {
    this.#open.delete(id);
  }

  abort([, id, text]) {
    const call = this.#open.get(id);
    if (call === undefined) return;
    // The callback keeps its own hold on the call: one that never settles leaves nothing here.
    this.#open.delete(id);
    call.reason = new DOMException(text, 'AbortError');
    call.controller?.abort(call.reason);
  }
}

/** The AbortSignal of a call, made when somebody looks at it. */
export function signalOf(call) {
  if (call.controller === undefined) {
    call.controller = new AbortController();
    if (call.reason !== undefined) call.controller.abort(call.reason);
  }
  return call.controller.signal;
}

/** JSON text of a thrown error. */
export const thrownText = (thrown) => wellFormed(JSON.stringify(describe(thrown)));

export const Entry = { CALL, ABORT, DONE, READY, LOG, FORGET };
