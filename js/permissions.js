// Permission handler factories. The decisions are the native core's own.

import { ConfigError, call } from './errors.js';
import { encodeOptions } from './json.js';
import { native } from './native.js';

/** What the decisions are made by: the request without its arguments and without what is no data. */
const requestText = ({ signal, input, ...request }) => JSON.stringify(request);

export function createModePermissionHandler(defaultMode = 'default') {
  if (typeof defaultMode !== 'string') throw new ConfigError('the default mode must be a permission mode');
  call(native.checkMode, defaultMode);
  return async (request) => JSON.parse(call(native.decideMode, requestText(request), defaultMode));
}

export function createRuleBasedPermissionHandler(config = {}) {
  // Parsed now, not when the first call is judged: a misspelt list or rule would deny nothing.
  const rules = call(native.compileRules, encodeOptions(config));
  return async (request) => JSON.parse(call(native.decideRules, requestText(request), rules));
}

export function createPathSafetyPermissionHandler(options = {}) {
  if (options === null || typeof options !== 'object') throw new ConfigError('path safety takes an object of options');
  const { explicitAllowRules = [] } = options;
  const rules = call(native.compileAllowRules, encodeOptions(explicitAllowRules));
  return async (request) => JSON.parse(call(native.decidePaths, requestText(request), rules));
}

export function createCompositePermissionHandler(handlers, strategy = 'first-wins') {
  if (strategy !== 'first-wins' && strategy !== 'deny-wins') {
    throw new ConfigError(`strategy must be "first-wins" or "deny-wins", got ${JSON.stringify(strategy)}`);
  }
  if (!Array.isArray(handlers)) throw new ConfigError('handlers must be an array of permission handlers');
  const active = handlers.filter((handler) => handler !== undefined);
  if (active.some((handler) => typeof handler !== 'function')) {
    throw new ConfigError('each of the handlers must be a function or undefined');
  }
  return async (request) => {
    let input = request.input;
    let ask;
    const merged = { behavior: 'allow' };
    for (const handler of active) {
      const decision = await handler(input === request.input ? request : { ...request, input });
      if (decision.behavior === 'deny') return decision;
      if (decision.behavior === 'ask') {
        if (strategy === 'first-wins') return decision;
        ask ??= decision;
        continue;
      }
      // Anything else is no answer, and no answer is no permission.
      if (decision.behavior !== 'allow') {
        throw new TypeError(`a combined handler answered with behavior ${JSON.stringify(decision.behavior)}`);
      }
      if (decision.updatedInput !== undefined) {
        merged.updatedInput = { ...merged.updatedInput, ...decision.updatedInput };
        input = { ...input, ...decision.updatedInput };
      }
      for (const key of ['effects', 'updatedPermissions']) {
        if (decision[key] !== undefined) merged[key] = [...(merged[key] ?? []), ...decision[key]];
      }
    }
    return ask ?? merged;
  };
}
