// The event stream of a request as an async iterator. Written by hand: an async generator costs twice as much an event.

import { call } from './errors.js';
import { hold, release } from './mailbox.js';
import { native } from './native.js';

const LENGTH = (1 << 30) - 1;
const CONTENT = 0;
const THINKING = 1;
const ENDED = 0xffffffff;

/** Filled by `take`: number of events, then one mark for each. Larger than any frame; shared by all streams. */
const scratch = new Uint32Array(1 + 1024);

const DONE = Object.freeze({ value: undefined, done: true });

export class EventStream {
  #owner;
  /** The native stream, once it has begun. */
  #native;
  #includeThinking;
  /** 'new' → 'open' → 'over' */
  #phase = 'new';
  #text = '';
  #marks = scratch.subarray(0, 0);
  #index = 0;
  #at = 0;
  /** Consumers that called `next` while nothing was there. */
  #waiting = [];
  /** Whether the request goes on by itself, which keeps the process and the Session alive. */
  #running = false;
  /** The cleanup after leaving early, shared by all who leave. */
  #leaving;

  constructor(owner, { includeThinking = false } = {}) {
    this.#owner = owner;
    this.#includeThinking = includeThinking === true;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    if (this.#index < this.#marks.length) return Promise.resolve({ value: this.#event(), done: false });
    return this.#pull();
  }

  /** Leaving early cancels the request and waits for its cleanup. */
  async return(value) {
    await this.#leave();
    return { value: await value, done: true };
  }

  async throw(error) {
    await this.#leave();
    throw error;
  }

  async [Symbol.asyncDispose]() {
    await this.#leave();
  }

  /** The native side has events for a waiting consumer. */
  ready() {
    while (this.#waiting.length > 0) {
      if (this.#index >= this.#marks.length && !this.#take()) break;
      this.#answer({ value: this.#event(), done: false });
    }
    if (this.#phase === 'over') while (this.#waiting.length > 0) this.#answer(DONE);
    if (this.#running && native.isStalled(this.#native)) this.#run(false);
  }

  /** A request that waits for a consumer who is gone must not keep the process; one that works must. */
  #run(running) {
    this.#running = running;
    if (running) hold(this.#owner);
    else release(this.#owner);
  }

  #pull() {
    if (this.#phase === 'new') {
      try {
        this.#native = this.#owner.startStream(this, this.#includeThinking);
        this.#phase = this.#native === undefined ? 'over' : 'open';
        if (this.#phase === 'open') this.#run(true);
      } catch (error) {
        this.#phase = 'over';
        return Promise.reject(error);
      }
    }
    if (this.#phase === 'open' && this.#waiting.length === 0 && this.#take()) {
      return Promise.resolve({ value: this.#event(), done: false });
    }
    if (this.#phase === 'over') return Promise.resolve(DONE);
    hold(this.#owner);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #answer(result) {
    release(this.#owner);
    this.#waiting.shift()(result);
  }

  /** Takes the next frame. */
  #take() {
    if (this.#phase !== 'open') return false;
    const text = call(native.take, this.#native, scratch);
    if (text === null) {
      if (scratch[0] === ENDED) this.#end();
      return false;
    }
    this.#text = text;
    this.#marks = scratch.slice(1, 1 + scratch[0]);
    this.#index = 0;
    this.#at = 0;
    if (!this.#running && !native.isStalled(this.#native)) this.#run(true);
    return true;
  }

  #event() {
    const mark = this.#marks[this.#index++];
    const from = this.#at;
    this.#at = from + (mark & LENGTH);
    const text = this.#text.slice(from, this.#at);
    const { sessionId } = this.#owner;
    switch (mark >>> 30) {
      case CONTENT:
        return { type: 'content', delta: text, sessionId };
      case THINKING:
        return { type: 'thinking', delta: text, sessionId };
      default: {
        const event = JSON.parse(text);
        event.sessionId = sessionId;
        return event;
      }
    }
  }

  #end() {
    this.#phase = 'over';
    if (this.#running) this.#run(false);
    this.#owner.streamEnded(this);
  }

  #leave() {
    if (this.#phase === 'open') {
      this.#text = '';
      this.#marks = scratch.subarray(0, 0);
      this.#index = 0;
      this.#end();
      this.ready();
      this.#leaving = this.#owner.leaveStream(this.#native);
    }
    this.#phase = 'over';
    return this.#leaving;
  }
}
