// Inline hooks and plugins: which callbacks belong to which event, and how one is called.

import { HookEvent } from './constants.js';
import { ConfigError } from './errors.js';
import { checkMiddleware } from './middleware.js';

const EVENTS = Object.values(HookEvent);

/** A plugin: middleware, hooks and tools that belong together. */
export function definePlugin(plugin) {
  const { name, hooks, tools = [], middleware } = plugin ?? {};
  if (typeof name !== 'string' || name.trim() === '') {
    throw new ConfigError('a plugin needs a name: a non-empty string');
  }
  checkMiddleware(middleware, `plugin ${name}: middleware`);
  if (!Array.isArray(tools)) throw new ConfigError(`plugin ${name}: tools must be an array of tool definitions`);
  addHooks(new Map(), hooks, `plugin ${name}: hooks`);
  return Object.freeze({ ...plugin, tools: Object.freeze([...tools]) });
}

/** The plugins of a Session, in order. */
export function pluginsOf({ plugins = [] }) {
  if (!Array.isArray(plugins)) throw new ConfigError('plugins must be an array of plugins');
  const names = new Set();
  return plugins.map((plugin) => {
    const defined = definePlugin(plugin);
    if (names.has(defined.name)) throw new ConfigError(`two plugins have the name ${defined.name}`);
    names.add(defined.name);
    return defined;
  });
}

/** Event → callbacks: those of the options first, then those of the plugins in their order. */
export function hooksOf({ hooks }, plugins) {
  const callbacks = new Map();
  addHooks(callbacks, hooks, 'hooks');
  for (const plugin of plugins) addHooks(callbacks, plugin.hooks, `plugin ${plugin.name}: hooks`);
  return callbacks;
}

function addHooks(callbacks, hooks, where) {
  if (hooks === undefined) return;
  if (hooks === null || typeof hooks !== 'object') {
    throw new ConfigError(`${where} must map events to arrays of callbacks`);
  }
  for (const [event, list] of Object.entries(hooks)) {
    if (!EVENTS.includes(event)) {
      throw new ConfigError(`${where}: there is no event ${event}; the events are ${EVENTS.join(', ')}`);
    }
    if (list === undefined) continue;
    if (!Array.isArray(list) || list.some((callback) => typeof callback !== 'function')) {
      throw new ConfigError(`${where}.${event} must be an array of functions`);
    }
    callbacks.set(event, [...(callbacks.get(event) ?? []), ...list]);
  }
}

/** How many callbacks each event has, for the native core. */
export const countsOf = (callbacks) => Object.fromEntries([...callbacks].map(([event, list]) => [event, list.length]));

/** The input of a callback: its own copy, with the error of a failed call as an Error. */
export function hookInput(input) {
  if (input.error === undefined) return input;
  const { name, message, code } = input.error;
  const error = Object.assign(new Error(message), { name });
  if (code != null) error.code = code;
  return { ...input, error };
}
