// Built-in tools as definitions that can be listed, registered, and executed directly.

import { markBuiltin } from './builtin-name.js';
import { call, errorOf } from './errors.js';
import { encode, encodeOptions } from './json.js';
import { attached, Entry, hold, register, release } from './mailbox.js';
import { native } from './native.js';

/** The direct calls of this thread. */
class DirectCalls {
  holds = 0;
  #runs = new Map();
  #next = 1;

  constructor() {
    this.handle = native.openDirect(attached(), register(this));
  }

  start(run, name, params, context) {
    const operation = this.#next++;
    call(native.runBuiltin, this.handle, operation, name, params, context);
    this.#runs.set(operation, run);
    return operation;
  }

  dispatch([kind, ...entry]) {
    if (kind === Entry.CALL) {
      const [id, , operation, item] = entry;
      const taken = () => native.tookYield(this.handle, id);
      const run = this.#runs.get(operation);
      if (run === undefined) taken();
      else run.yielded(item, taken);
    } else if (kind === Entry.DONE) {
      const [operation, ok, value] = entry;
      const run = this.#runs.get(operation);
      this.#runs.delete(operation);
      run?.finished(ok ? { result: value } : { error: errorOf(value) });
    }
  }
}

let directCalls;

/** One direct call: yields in order, then the result. */
class Run {
  #operation;
  #yields = [];
  #end;
  #wake = () => {};

  constructor(name, params, { signal, ...context }) {
    directCalls ??= new DirectCalls();
    const { sessionId, messageId, permissionMode, contextSnapshot } = context;
    const data = { sessionId, messageId, permissionMode, contextSnapshot, aborted: signal?.aborted === true };
    this.#operation = directCalls.start(this, name, encode(params, 'parameters'), encodeOptions(data));
    this.signal = signal;
    this.abort = () => native.abortBuiltin(directCalls.handle, this.#operation);
    signal?.addEventListener('abort', this.abort, { once: true });
  }

  yielded(item, taken) {
    this.#yields.push({ item, taken });
    this.#wake();
  }

  finished(end) {
    this.#end = end;
    this.signal?.removeEventListener('abort', this.abort);
    this.#wake();
  }

  get isFinished() {
    return this.#end !== undefined;
  }

  async next() {
    while (this.#yields.length === 0 && this.#end === undefined) {
      // Only a consumer that waits keeps the process alive; one that went away leaves its run behind.
      hold(directCalls);
      await new Promise((resolve) => {
        this.#wake = resolve;
      });
      release(directCalls);
    }
    const { item, taken } = this.#yields.shift() ?? {};
    if (taken !== undefined) {
      taken();
      return { value: item, done: false };
    }
    if (this.#end.error !== undefined) throw this.#end.error;
    return { value: this.#end.result, done: true };
  }

  /** Leaving early cancels the tool and waits for its cleanup. */
  async stop() {
    this.abort();
    while (!this.isFinished) await this.next().catch(() => {});
  }
}

function definitionOf(spec) {
  const definition = {
    ...spec,
    async *execute(params, context = {}) {
      const run = new Run(spec.name, params, context);
      try {
        for (;;) {
          const step = await run.next();
          if (step.done) return step.value;
          yield step.value;
        }
      } finally {
        if (!run.isFinished) await run.stop();
      }
    },
  };
  markBuiltin(definition);
  return Object.freeze(definition);
}

let definitions;

export async function getBuiltinTools({ mcpRegistry, includeMcpProtocolTools = true } = {}) {
  definitions ??= JSON.parse(native.builtinTools()).map(definitionOf);
  const tools = [...definitions];
  if (mcpRegistry !== undefined && includeMcpProtocolTools) {
    // A registry that cannot list its tools must not take the built-in ones away.
    const remote = await Promise.resolve()
      .then(() => mcpRegistry.getAvailableTools())
      .catch(() => []);
    tools.push(...remote);
  }
  return tools;
}
