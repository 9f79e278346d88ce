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
  #handle;
  #includeThinking;
  #onEnd;
  /** 'new' → 'open' → 'over' */
  #phase = 'new';
  #text = '';
  #marks = scratch.subarray(0, 0);
  #index = 0;
  #at = 0;
  /** Consumers that called `next` while nothing was there. */
  #waiting = [];

  constructor(owner, handle, { includeThinking = false } = {}, onEnd = () => {}) {
    this.#owner = owner;
    this.#handle = handle;
    this.#includeThinking = includeThinking === true;
    this.#onEnd = onEnd;
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
    return { value, done: true };
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
  }

  #pull() {
    if (this.#phase === 'new') {
      try {
        this.#phase = this.#owner.startStream(this, this.#includeThinking) ? 'open' : 'over';
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
    const text = call(native.take, this.#handle, scratch);
    if (text === null) {
      if (scratch[0] === ENDED) this.#end();
      return false;
    }
    this.#text = text;
    this.#marks = scratch.slice(1, 1 + scratch[0]);
    this.#index = 0;
    this.#at = 0;
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
    this.#onEnd(this);
  }

  async #leave() {
    const phase = this.#phase;
    if (phase === 'open') {
      this.#text = '';
      this.#marks = scratch.subarray(0, 0);
      this.#index = 0;
      this.#end();
      this.ready();
      await this.#owner.leaveStream();
    }
    this.#phase = 'over';
  }
}
