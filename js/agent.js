// `createAgent`: a Session whose `send` gives a response object.

import { PermissionMode } from './constants.js';
import { ConfigError, errorOf, SessionInputError } from './errors.js';
import { scriptOf } from './script.js';
import { Session } from './session.js';

const PRESETS = {
  default: PermissionMode.DEFAULT,
  'accept-edits': PermissionMode.AUTO_EDIT,
  'bypass-permissions': PermissionMode.YOLO,
  plan: PermissionMode.PLAN,
};

/** Session options that `advanced` may not smuggle in. */
const NOT_ADVANCED = [
  'provider',
  'model',
  'temperature',
  'maxOutputTokens',
  'tools',
  'systemPrompt',
  'maxTurns',
  'permissionMode',
  'permissionHandler',
  'canUseTool',
  'permission',
  'connection',
];

/** Session options whose place an agent has `advanced.permission` in. */
const POLICY = ['permissionMode', 'permissionHandler', 'permission'];

/** Session options that mean something only in `advanced`: a policy in the wrong place must not be ignored. */
const ONLY_ADVANCED = [
  'permissions',
  'confirmationHandler',
  'confirmationHandlerFactory',
  'confirmationFallback',
  'allowedTools',
  'disallowedTools',
  'toolSourcePolicy',
  'toolTimeoutMs',
  'toolConcurrency',
  'toolLifecycle',
  'hooks',
  'middleware',
  'plugins',
  'logger',
  'artifacts',
];

export async function createAgent(options) {
  if (options === null || typeof options !== 'object') throw new ConfigError('an agent needs an object of options');
  const given = (names) => names.filter((name) => options[name] !== undefined).join(', ');
  if (given(POLICY) !== '')
    throw new ConfigError(`the policy of an agent is advanced.permission, not ${given(POLICY)}`);
  const misplaced = given(ONLY_ADVANCED);
  if (misplaced !== '') throw new ConfigError(`options of the Session belong in advanced: ${misplaced}`);
  if (options.advanced === null || typeof (options.advanced ?? {}) !== 'object') {
    throw new ConfigError('advanced must be an object of options');
  }
  if (options.tools !== undefined && typeof options.tools?.[Symbol.iterator] !== 'function') {
    throw new ConfigError('tools must be an array of tool definitions');
  }
  const { model, apiKey, profile, provider = 'openai', baseUrl, filesystem, tools, advanced = {} } = options;
  const { permission, connection } = advanced;
  const rest = Object.fromEntries(Object.entries(advanced).filter(([key]) => !NOT_ADVANCED.includes(key)));
  const sessionOptions = {
    ...rest,
    provider: connectionOf(provider, { ...connection, apiKey, baseUrl }),
    model,
    tools: tools === undefined ? undefined : [...tools],
    ...permissionOptions(permission),
  };
  for (const key of ['systemPrompt', 'temperature', 'maxOutputTokens', 'maxTurns']) {
    if (options[key] !== undefined) sessionOptions[key] = options[key];
  }
  if (filesystem !== undefined) {
    const { defaultContext = {} } = rest;
    sessionOptions.defaultContext = {
      ...defaultContext,
      capabilities: { ...defaultContext.capabilities, filesystem },
    };
  }
  const session = await Session.open(profile ?? (filesystem === undefined ? 'server' : 'local'), sessionOptions);
  return agentOver(session);
}

/** A connection object keeps what it says; the other options fill in what it leaves out. A script needs none of them. */
function connectionOf(provider, given) {
  if (typeof provider === 'string') return { ...given, type: provider };
  if (provider === null || typeof provider !== 'object' || scriptOf(provider) !== undefined) return provider;
  return { ...given, ...provider };
}

function permissionOptions(permission) {
  if (permission === undefined) return {};
  if (typeof permission === 'function') {
    return {
      permissionMode: PermissionMode.YOLO,
      permissionHandler: async ({ toolKind, signal, ...request }) =>
        decisionOf(await permission({ ...request, kind: toolKind, signal })),
    };
  }
  if (!Object.hasOwn(PRESETS, permission)) {
    throw new ConfigError(`advanced.permission must be a function or one of ${Object.keys(PRESETS).join(', ')}`);
  }
  return { permissionMode: PRESETS[permission] };
}

function decisionOf(answer) {
  switch (answer) {
    case 'allow':
    case 'ask':
      return { behavior: answer };
    case 'deny':
      return { behavior: 'deny', message: 'Denied by permission policy' };
    default:
      return answer;
  }
}

function agentOver(session) {
  let last;
  async function send(message, options) {
    if (last !== undefined && !last.isSettled) {
      throw new SessionInputError(
        'the previous response is not settled: read it to its end (for instance await response.text()) or abort the ' +
          'agent before sending the next message',
        { code: 'SESSION_STEERING_UNAVAILABLE' },
      );
    }
    const submission = await session.send(message, options);
    last = new AgentResponse(INTERNAL, session, submission);
    return last;
  }
  async function abort() {
    last?.abandon(INTERNAL);
    await session.abort();
  }
  return new Proxy(session, {
    get(target, key) {
      if (key === 'send') return send;
      if (key === 'abort') return abort;
      const value = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

const INTERNAL = Symbol('internal');

export class AgentResponse {
  #session;
  #events = [];
  #listeners = new Map();
  #consumption;
  #begun = false;
  #settled = false;
  #failure;
  #error;
  #more = deferred();
  #text;

  constructor(key, session, submission) {
    if (key !== INTERNAL) throw new TypeError('an AgentResponse comes from agent.send()');
    this.#session = session;
    this.submission = Object.freeze({ ...submission });
  }

  get isSettled() {
    return this.#settled;
  }

  text() {
    this.#text ??= this.#collect();
    return this.#text;
  }

  async *textStream() {
    let any = false;
    for await (const event of this.stream()) {
      this.#failOn(event);
      if (event.type === 'content') {
        any = true;
        yield event.delta;
      } else if (event.type === 'result' && !any && event.content) {
        yield event.content;
      }
    }
  }

  async *stream() {
    this.#start();
    for (let i = 0; ; i++) {
      while (i >= this.#events.length) {
        if (this.#failure !== undefined) throw this.#failure.error;
        if (this.#settled) return;
        await this.#more.promise;
      }
      yield this.#events[i];
    }
  }

  on(type, listener) {
    const listeners = this.#listeners.get(type);
    if (listeners === undefined) this.#listeners.set(type, [listener]);
    else listeners.push(listener);
    if (this.#consumption === undefined) this.#start();
    else this.#replay(type, listener, this.#events.length);
    return this;
  }

  /** A response whose reading has not begun ends with its aborted request. */
  abandon(key) {
    if (key === INTERNAL && !this.#begun) this.#settle();
  }

  /** Events a late listener has missed. */
  async #replay(type, listener, count) {
    try {
      for (const event of this.#events.slice(0, count)) if (event.type === type) await listener(event);
    } catch (error) {
      this.#failure ??= { error };
      this.#wake();
    }
  }

  async #collect() {
    let text = '';
    let final;
    for await (const event of this.stream()) {
      this.#failOn(event);
      if (event.type === 'content') text += event.delta;
      if (event.type === 'result') final = event.content;
    }
    return text === '' ? (final ?? '') : text;
  }

  #start() {
    // Listeners that are added in the same tick hear everything from the first event on.
    this.#consumption ??= Promise.resolve().then(() => this.#consume());
  }

  async #consume() {
    if (this.#settled) return;
    this.#begun = true;
    try {
      for await (const event of this.#session.stream()) {
        // The whole error is only there until the next request ends.
        if (event.type === 'error') this.#error = this.#session.errorBehind(event);
        this.#events.push(event);
        this.#wake();
        for (const listener of this.#listeners.get(event.type) ?? []) await listener(event);
      }
    } catch (error) {
      this.#failure ??= { error };
    }
    this.#settle();
  }

  #failOn(event) {
    if (event.type === 'error')
      throw this.#error ?? errorOf({ code: event.code ?? 'INTERNAL', message: event.message });
    if (event.type === 'result' && event.subtype === 'error') {
      throw errorOf({ code: 'INTERNAL', message: event.error ?? 'the request failed' });
    }
  }

  #settle() {
    this.#settled = true;
    this.#wake();
  }

  #wake() {
    const { resolve } = this.#more;
    this.#more = deferred();
    resolve();
  }
}

function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
