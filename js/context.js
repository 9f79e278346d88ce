// Runtime context helpers. The rules are the native core's own.

import { call } from './errors.js';
import { encodeOptions } from './json.js';
import { native } from './native.js';

export function mergeContext(base, turn) {
  return JSON.parse(call(native.mergeContext, encodeOptions(base ?? {}), encodeOptions(turn ?? {})));
}

export function createContextSnapshot(sessionId, turnId, defaultContext, turnContext) {
  const merged = encodeOptions(mergeContext(defaultContext, turnContext));
  return JSON.parse(call(native.contextSnapshot, sessionId, turnId, merged));
}

export function hasFilesystemCapability(context) {
  return (context?.capabilities?.filesystem?.roots?.length ?? 0) > 0;
}
