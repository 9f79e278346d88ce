// Onion composition, and the middleware that a Session is given.

import { ConfigError } from './errors.js';

export function composeMiddleware(middleware, terminal) {
  const layers = [...middleware];
  const run = (index, request) => {
    if (index === layers.length) return terminal(request);
    let called = false;
    return layers[index](request, (changed = request) => {
      if (called) throw new Error('next() called multiple times');
      called = true;
      return run(index + 1, changed);
    });
  };
  return (request) => run(0, request);
}

/** What a `ModelMiddleware` may wrap. */
export const MODEL_WRAPPERS = ['wrapChat', 'wrapSideQuery', 'wrapStream', 'wrapChatWithRetryEvents'];

/** The model middleware of a Session, outermost first: that of the options, then that of the plugins in their order. */
export const modelMiddlewareOf = (options, plugins) =>
  collected(options, plugins, (config, where) => modelListOf(config.model, `${where}.model`));

/** The same for tool middleware. */
export const toolMiddlewareOf = (options, plugins) =>
  collected(options, plugins, (config, where) => toolListOf(config.tool, `${where}.tool`));

function collected(options, plugins, listOf) {
  const lists = plugins.map(({ name, middleware }) => [middleware, `plugin ${name}: middleware`]);
  return [[options.middleware, 'middleware'], ...lists].flatMap(([config, where]) =>
    listOf(configOf(config, where), where),
  );
}

/** Checks the middleware of a plugin, which is not part of a Session yet. */
export function checkMiddleware(config, where) {
  const { model, tool } = configOf(config, where);
  modelListOf(model, `${where}.model`);
  toolListOf(tool, `${where}.tool`);
}

function configOf(config, where) {
  if (config === undefined) return {};
  if (config === null || typeof config !== 'object' || Array.isArray(config)) {
    throw new ConfigError(`${where} must be an object with lists of middleware: { model: [...], tool: [...] }`);
  }
  const unknown = Object.keys(config).find((key) => key !== 'model' && key !== 'tool');
  if (unknown !== undefined) throw new ConfigError(`${where} has no list ${unknown}; the lists are model and tool`);
  return config;
}

function listOf(list, where) {
  if (list !== undefined && !Array.isArray(list)) throw new ConfigError(`${where} must be an array of middleware`);
  return list ?? [];
}

/** A checked copy of a list of model middleware. */
export function modelListOf(list, where) {
  return listOf(list, where).map((middleware, at) => {
    if (middleware === null || typeof middleware !== 'object') {
      throw new ConfigError(`${where}[${at}] must be an object with any of ${MODEL_WRAPPERS.join(', ')}`);
    }
    const given = MODEL_WRAPPERS.filter((name) => middleware[name] !== undefined);
    const wrong = given.find((name) => typeof middleware[name] !== 'function');
    if (wrong !== undefined) throw new ConfigError(`${where}[${at}].${wrong} must be a function`);
    // One that wraps nothing has a misspelt name.
    if (given.length === 0)
      throw new ConfigError(`${where}[${at}] wraps nothing; give it any of ${MODEL_WRAPPERS.join(', ')}`);
    return middleware;
  });
}

function toolListOf(list, where) {
  return listOf(list, where).map((middleware, at) => {
    if (typeof middleware !== 'function') throw new ConfigError(`${where}[${at}] must be a function`);
    return middleware;
  });
}
