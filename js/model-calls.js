// Model middleware inside a Session: runs its layers around a native model call. Chunks cross in batches, both ways,
// and neither side runs far ahead of the other.

import { call, SdkError } from './errors.js';
import { encode } from './json.js';
import { signalOf } from './mailbox.js';
import { aroundGenerator, frozen, requestOf } from './model-middleware.js';
import { native } from './native.js';

/** Results of `modelPush`. */
const FULL = 1;
const OVER = 2;

/** A batch crosses at the latest when it holds this many chunks. */
const BATCH = 64;

export class ModelCalls {
  #layers;
  #operations;
  #handle;
  /** The conversation and tools of the last call: only what is new crosses. Frozen, shared by the requests. */
  #messages = [];
  #tools = [];

  /** Undefined where nothing wraps the stream, the one operation a Session uses: then nothing crosses. */
  static of(middleware, operations, handle) {
    const layers = middleware.filter(({ wrapStream }) => wrapStream !== undefined);
    return layers.length === 0 ? undefined : new ModelCalls(layers, operations, handle);
  }

  constructor(layers, operations, handle) {
    this.#layers = layers;
    this.#operations = operations;
    this.#handle = handle;
  }

  /** Answers one model call: true when the answer is complete, false when it ended with the model's own failure. */
  run(open, exchange, { model, kept, messages, tools }) {
    // At once, in the order of the calls: what crosses next builds upon it.
    if (kept > this.#messages.length) throw new SdkError('a model call builds upon messages that never came');
    this.#messages = [...this.#messages.slice(0, kept), ...messages.map(frozen)];
    if (tools !== undefined) this.#tools = frozen(tools);
    const request = requestOf({
      operation: 'streamChat',
      model,
      messages: frozen([...this.#messages]),
      tools: this.#tools.length > 0 ? this.#tools : undefined,
      signal: signalOf(open),
    });
    const answer = new Answer(this.#operations, this.#handle(), exchange);
    const around = aroundGenerator(this.#layers, 'wrapStream', (changed) => answer.ofModel(request, changed));
    return answer.give(around(request), request.signal);
  }
}

/** One answer: chunks of the layers on their way out, chunks of the model on their way in. */
class Answer {
  #operations;
  #handle;
  #exchange;
  #batch = [];
  #scheduled = false;
  /** Settles when there is room again; undefined while there is. */
  #room;
  #over = false;
  /** What the model failed with, as the layers saw it. */
  #failure = UNTHROWN;

  constructor(operations, handle, exchange) {
    this.#operations = operations;
    this.#handle = handle;
    this.#exchange = exchange;
  }

  /** Hands over what the outermost layer yields, until it ends or nobody wants more. */
  async give(generator, signal) {
    try {
      for (;;) {
        const step = await generator.next();
        if (step.done) break;
        this.#put(encode(step.value, 'the chunk'));
        if (this.#batch.length >= BATCH) this.#flush();
        if (this.#room !== undefined) await this.#room;
        if (signal.aborted || this.#over) {
          await generator.return();
          break;
        }
      }
      await this.#rest();
      return true;
    } catch (thrown) {
      // What was yielded before the failure was said before it.
      await this.#rest();
      try {
        await generator.return();
      } catch {
        // A failing clean-up does not replace its cause.
      }
      if (thrown === this.#failure) return false;
      throw thrown;
    }
  }

  #put(text) {
    this.#batch.push(text);
    if (this.#scheduled) return;
    // A layer may wait for something of its own after a chunk, which must be seen meanwhile.
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  /** Nothing is pushed while there is no room. */
  #flush() {
    if (this.#batch.length === 0 || this.#room !== undefined) return;
    const text = `[${this.#batch.join()}]`;
    this.#batch = [];
    let pushed;
    const room = this.#operations.runUnheld((operation) => {
      pushed = native.modelPush(this.#handle, this.#exchange, operation, text);
      return pushed !== FULL;
    });
    if (pushed === OVER) this.#over = true;
    if (pushed !== FULL) return;
    this.#room = room.then(() => {
      this.#room = undefined;
      this.#flush();
    });
  }

  async #rest() {
    while (this.#batch.length > 0 && !this.#over) {
      this.#flush();
      await this.#room;
    }
  }

  /** The answer of the native model to a request. Nothing happens before it is read; leaving it closes the connection. */
  async *ofModel(original, request) {
    try {
      call(native.modelStart, this.#handle, this.#exchange, changesOf(original, request));
      for (;;) {
        const chunks = await this.#pull();
        if (chunks === null) return;
        for (const chunk of chunks) yield chunk;
      }
    } finally {
      native.modelStop(this.#handle, this.#exchange);
    }
  }

  async #pull() {
    // Everything that came of the last chunks is there: it does not wait for the next ones.
    this.#flush();
    try {
      let text;
      const later = this.#operations.runUnheld((operation) => {
        text = call(native.modelPull, this.#handle, this.#exchange, operation);
        return text !== null;
      });
      return text === null ? await later : JSON.parse(text);
    } catch (failure) {
      this.#failure = failure;
      throw failure;
    }
  }
}

/** Equal to nothing that can be thrown. */
const UNTHROWN = Symbol('unthrown');

const NO_TOOLS = Object.freeze([]);

/** What differs from the original request, as JSON text; an unchanged message is its place. All values are JSON. */
function changesOf(original, { messages, tools = NO_TOOLS }) {
  const changes = {};
  if (messages !== original.messages) {
    const places = new Map(original.messages.map((message, at) => [message, at]));
    changes.messages = messages.map((message) => places.get(message) ?? message);
  }
  if (tools !== (original.tools ?? NO_TOOLS)) changes.tools = tools;
  return JSON.stringify(changes);
}
