// The application's observer of durable boundaries of tool calls. When a boundary is told is the native core's rule.

import { ConfigError, SdkError } from './errors.js';

const CALLBACKS = ['onToolScheduled', 'onToolSettled'];

/** The observer of a Session's options, if there is one. */
export function toolLifecycleOf({ toolLifecycle }) {
  if (toolLifecycle === undefined) return undefined;
  if (toolLifecycle === null || typeof toolLifecycle !== 'object') {
    throw new ConfigError(`toolLifecycle must be an object with ${CALLBACKS.join(' and ')}`);
  }
  for (const name of CALLBACKS) {
    const callback = toolLifecycle[name];
    if (callback !== undefined && typeof callback !== 'function') {
      throw new ConfigError(`toolLifecycle.${name} must be a function`);
    }
  }
  // Nothing that could be told of: nothing crosses.
  if (CALLBACKS.every((name) => toolLifecycle[name] === undefined)) return undefined;
  return new Boundaries(toolLifecycle);
}

class Boundaries {
  #lifecycle;
  /** Number → what `onToolScheduled` gave, until the native core forgets it. Ids of calls may come again. */
  #invocations = new Map();
  #last = 0;

  constructor(lifecycle) {
    this.#lifecycle = lifecycle;
  }

  async handle(step, ...args) {
    switch (step) {
      case 'scheduled':
        return this.#scheduled(...args);
      case 'requested': {
        const [observer, details, input] = args;
        const id = await this.#of(observer).onPermissionRequested(details, input);
        if (typeof id !== 'string' || id === '') {
          throw new TypeError('onPermissionRequested must resolve to a permission request id: a non-empty string');
        }
        return id;
      }
      case 'resolved': {
        const [observer, resolution] = args;
        await this.#of(observer).onPermissionResolved(resolution);
        return null;
      }
      case 'started': {
        const [observer, event] = args;
        await this.#of(observer).onExecutionStarted(event);
        return null;
      }
      case 'settled': {
        const [event] = args;
        await this.#lifecycle.onToolSettled?.(event);
        return null;
      }
      default:
        throw new TypeError(`unknown boundary ${step}`);
    }
  }

  forget([, observer]) {
    this.#invocations.delete(observer);
  }

  /** A boundary that nobody could be told of was not stored. */
  #of(observer) {
    const invocation = this.#invocations.get(observer);
    if (invocation === undefined) throw new SdkError(`the observer of this call is unknown (${observer})`);
    return invocation;
  }

  async #scheduled(event) {
    const invocation = await this.#lifecycle.onToolScheduled?.(event);
    if (invocation === undefined || invocation === null) return null;
    if (typeof invocation !== 'object') {
      throw new TypeError('onToolScheduled must resolve to an object of callbacks, or to undefined');
    }
    const has = (name) => typeof invocation[name] === 'function';
    const wants = {
      requested: has('onPermissionRequested'),
      resolved: has('onPermissionResolved'),
      started: has('onExecutionStarted'),
    };
    // Nothing fails from here on, so that the core hears of what is kept.
    this.#last = (this.#last + 1) >>> 0;
    this.#invocations.set(this.#last, invocation);
    return { observer: this.#last, ...wants };
  }
}
