// `scriptedProvider`: a model that plays turns, for tests without a network.

import { call, ConfigError, SdkError } from './errors.js';
import { encode, encodeOptions } from './json.js';
import { attached, Entry, register, thrownText } from './mailbox.js';
import { native } from './native.js';
import { setScript } from './script.js';

class Script {
  #next;
  #left;
  #journal = [];

  constructor(turns, options) {
    const functional = typeof turns === 'function' || turns.some((turn) => typeof turn === 'function');
    if (functional) this.#next = typeof turns === 'function' ? turns : this.#inOrder([...turns]);
    const { requestTimeoutMs, streamIdleTimeoutMs, retry } = options;
    const settings = { requestTimeoutMs, streamIdleTimeoutMs, retry };
    const text = encodeOptions(functional ? settings : { ...settings, turns });
    this.handle = call(native.openScript, attached(), register(this), text, functional);
  }

  /** Plays a list that holds functions. */
  #inOrder(turns) {
    const count = turns.length;
    this.#left = count;
    return (request) => {
      if (turns.length === 0) {
        throw new SdkError(
          `the script has ${count} turn${count === 1 ? '' : 's'}, but the model was called once more; add a turn`,
          { code: 'INVALID_MODEL_REQUEST' },
        );
      }
      const turn = turns.shift();
      this.#left = turns.length;
      return typeof turn === 'function' ? turn(request) : turn;
    };
  }

  get remaining() {
    return this.#left ?? native.scriptTurnsLeft(this.handle) ?? Number.POSITIVE_INFINITY;
  }

  get requests() {
    const count = native.scriptLength(this.handle);
    while (this.#journal.length < count) {
      this.#journal.push(JSON.parse(native.scriptRequest(this.handle, this.#journal.length)));
    }
    return this.#journal.slice();
  }

  dispatch([kind, id, , request]) {
    if (kind !== Entry.CALL) return;
    const settle = (code, text) => native.settleTurn(this.handle, id, code, text);
    Promise.resolve()
      .then(() => this.#next(request))
      .then((turn) => encode(turn, 'the scripted turn'))
      .then(
        (text) => settle(0, text),
        (thrown) => settle(2, thrownText(thrown)),
      );
  }
}

export function scriptedProvider(turns, options = {}) {
  if (typeof turns !== 'function' && !Array.isArray(turns)) {
    throw new ConfigError('scriptedProvider needs a list of turns or a function of the request');
  }
  const script = new Script(turns, options);
  const provider = {
    ...options,
    type: 'scripted',
    get requests() {
      return script.requests;
    },
    get remaining() {
      return script.remaining;
    },
  };
  setScript(provider, script);
  return provider;
}
