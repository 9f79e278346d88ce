// The application's observer of durable boundaries of tool calls. When a boundary is told is the native core's rule.

import { ConfigError } from './errors.js';

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
  return new Boundaries(toolLifecycle);
}

class Boundaries {
  #lifecycle;
  /** Call id → what `onToolScheduled` gave for it, until the call has settled. */
  #invocations = new Map();

  constructor(lifecycle) {
    this.#lifecycle = lifecycle;
  }

  async handle(step, ...args) {
    switch (step) {
      case 'scheduled':
        return this.#scheduled(...args);
      case 'requested': {
        const [callId, details, input] = args;
        const id = await this.#invocations.get(callId)?.onPermissionRequested(details, input);
        if (typeof id !== 'string' || id === '') {
          throw new TypeError('onPermissionRequested must resolve to a permission request id: a non-empty string');
        }
        return id;
      }
      case 'resolved': {
        const [callId, resolution] = args;
        await this.#invocations.get(callId)?.onPermissionResolved(resolution);
        return null;
      }
      case 'started': {
        const [callId, event] = args;
        await this.#invocations.get(callId)?.onExecutionStarted(event);
        return null;
      }
      case 'settled': {
        const [event] = args;
        this.#invocations.delete(event.toolCallId);
        await this.#lifecycle.onToolSettled?.(event);
        return null;
      }
      default:
        throw new TypeError(`unknown boundary ${step}`);
    }
  }

  async #scheduled(event) {
    try {
      const invocation = await this.#lifecycle.onToolScheduled?.(event);
      if (invocation === undefined || invocation === null) return null;
      if (typeof invocation !== 'object') {
        throw new TypeError('onToolScheduled must resolve to an object of callbacks, or to undefined');
      }
      this.#invocations.set(event.toolCallId, invocation);
      const has = (name) => typeof invocation[name] === 'function';
      return {
        requested: has('onPermissionRequested'),
        resolved: has('onPermissionResolved'),
        started: has('onExecutionStarted'),
      };
    } catch (failure) {
      // The request ends here, and with it the calls of this turn that were scheduled before.
      this.#invocations.clear();
      throw failure;
    }
  }
}
