// `createToolLimiter`: slots and file locks for several Sessions.

import { call, ConfigError } from './errors.js';
import { encodeOptions } from './json.js';
import { native } from './native.js';

/** What was made here: a limiter belongs to its thread and to its copy of this package. */
const limiters = new WeakSet();

export function createToolLimiter(limits = {}) {
  if (limits === null || typeof limits !== 'object' || Array.isArray(limits)) {
    throw new ConfigError('createToolLimiter takes an object of limits');
  }
  const limiter = Object.freeze({ handle: call(native.openLimiter, encodeOptions(limits)) });
  limiters.add(limiter);
  return limiter;
}

/** The native limiter behind a value; undefined for anything else. */
export const limiterOf = (value) => (limiters.has(value) ? value.handle : undefined);
