// The Session facade: converts shapes, wires signals and callbacks. States and rules live in the native core.

import { call, ConfigError, describe, errorOf, SdkError } from './errors.js';
import { countsOf, hookInput, hooksOf, pluginsOf } from './hooks.js';
import { encode, encodeOptions } from './json.js';
import { limiterOf } from './limiter.js';
import { levelOf, loggerOf, tell } from './logger.js';
import { attached, Calls, drain, Entry, Operations, register, signalOf, thrownText, unregister } from './mailbox.js';
import { modelMiddlewareOf, toolMiddlewareOf } from './middleware.js';
import { ModelCalls } from './model-calls.js';
import { native } from './native.js';
import { scriptOf } from './script.js';
import { EventStream } from './stream.js';
import { authoredExecute, collectToolExecution, definitionsText } from './tool.js';
import { toolLifecycleOf } from './tool-lifecycle.js';
import { aroundTools } from './tool-middleware.js';

const JSON_RESULT = 0;
const TEXT_RESULT = 1;
const THROWN = 2;

/** Marks the JSON text of a whole `ToolResult`, as the generator protocol returns it. */
const WHOLE_RESULT = '\u0001';

/** The options that cross as data. */
const DATA_OPTIONS = [
  'model',
  'temperature',
  'maxOutputTokens',
  'maxContextTokens',
  'providerOptions',
  'allowedTools',
  'disallowedTools',
  'toolSourcePolicy',
  'permissionMode',
  'permissions',
  'confirmationFallback',
  'systemPrompt',
  'maxTurns',
  'toolTimeoutMs',
  'toolConcurrency',
  'maxToolResultBytes',
  'artifacts',
  'defaultContext',
  'outputFormat',
  'hookTimeoutMs',
  'sessionEndHookTimeoutMs',
];

/** Services a Session may offer to tools that declare them. */
const SERVICES = ['memoryManager'];

const PROVIDER_OPTIONS = [
  'id',
  'type',
  'apiKey',
  'baseUrl',
  'headers',
  'organization',
  'apiVersion',
  'projectId',
  'requestTimeoutMs',
  'streamIdleTimeoutMs',
  'retry',
];

/**
 * Options of the documented surface that this version does not have. They promise something (isolation, storage, a
 * budget, a policy), so ignoring them in silence would break that promise.
 */
const NOT_YET = [
  'agents',
  'durableEventStore',
  'durableExecutionLeaseStore',
  'executionLease',
  'mcpServers',
  'providerRegistry',
  'sandbox',
  'sessionEventStore',
  'sessionRepository',
  'skills',
  'tokenBudget',
];

function refuseMissing(options) {
  const asked = NOT_YET.filter((name) => options[name] !== undefined);
  if (options.storagePath !== undefined && options.persistSession !== false) asked.push('storagePath');
  if (asked.length > 0) throw new ConfigError(`not available in this version: ${asked.join(', ')}; leave them out`);
}

function pick(source, keys) {
  const picked = {};
  for (const key of keys) if (source[key] !== undefined) picked[key] = source[key];
  return picked;
}

function requireFunction(name, value) {
  if (value !== undefined && typeof value !== 'function') throw new ConfigError(`${name} must be a function`);
}

function requireOptions(method, options) {
  if (options === null || typeof options !== 'object') throw new ConfigError(`${method} takes an object of options`);
}

/** A copy that later changes do not reach. */
function copied(context) {
  try {
    return structuredClone(context);
  } catch (cause) {
    throw new ConfigError(`runtime context: ${describe(cause).message}`, { cause });
  }
}

export class Session {
  #handle;
  #key;
  #options;
  #profile;
  #tools;
  #permission;
  #hooks;
  #toolMiddleware;
  #toolLifecycle;
  /** Model middleware, where there is any. */
  #models;
  #confirmation;
  #logger;
  #defaultContext;
  #model;
  #script;
  /** Open streams. More than one when a stream is read late, after the next request began. */
  #streams = new Set();
  #signal;
  #calls = new Calls();
  #answers = { heads: [], texts: [] };
  #operations = new Operations();
  #closed = false;
  #closing;

  /** Number of awaited promises; kept by the mailbox. */
  holds = 0;

  constructor(profile, options, parent) {
    if (options === null || typeof options !== 'object') throw new ConfigError('a Session needs an object of options');
    const { provider, tools = [], permissionHandler, confirmationHandler, confirmationHandlerFactory } = options;
    if (provider === null || typeof provider !== 'object') {
      throw new ConfigError('provider must be a connection configuration, for instance { type: "openai", apiKey }');
    }
    refuseMissing(options);
    if (!Array.isArray(tools)) throw new ConfigError('tools must be an array of tool definitions');
    requireFunction('permissionHandler', permissionHandler);
    if (confirmationHandler !== undefined && typeof confirmationHandler?.requestConfirmation !== 'function') {
      throw new ConfigError('confirmationHandler must be an object with requestConfirmation(details)');
    }
    requireFunction('confirmationHandlerFactory', confirmationHandlerFactory);
    this.#options = options;
    this.#profile = profile;
    const plugins = pluginsOf(options);
    this.#tools = [...tools, ...plugins.flatMap((plugin) => plugin.tools)];
    const origins = plugins.flatMap((plugin) => plugin.tools.map(() => plugin.name));
    this.#hooks = hooksOf(options, plugins);
    this.#toolMiddleware = toolMiddlewareOf(options, plugins);
    this.#toolLifecycle = toolLifecycleOf(options);
    this.#models = ModelCalls.of(modelMiddlewareOf(options, plugins), this.#operations, () => this.#handle);
    this.#permission = permissionHandler;
    this.#logger = loggerOf(options);
    this.#defaultContext = copied(options.defaultContext ?? {});
    this.#model = options.model;
    this.#script = scriptOf(provider);
    const limiter = limiterOf(options.toolConcurrency);
    this.#key = register(this);
    try {
      this.#handle = call(
        native.openSession,
        attached(),
        JSON.stringify({
          key: this.#key,
          permission: permissionHandler !== undefined,
          confirmation: confirmationHandler !== undefined || confirmationHandlerFactory !== undefined,
          toolMiddleware: this.#toolMiddleware.length > 0,
          toolLifecycle: this.#toolLifecycle !== undefined,
          model: this.#models !== undefined,
          log: levelOf(this.#logger),
        }),
        encodeOptions({
          profile,
          ...pick(options, DATA_OPTIONS),
          ...(limiter !== undefined && { toolConcurrency: undefined }),
          hooks: countsOf(this.#hooks),
          availableServices: SERVICES.filter((name) => options[name] !== undefined),
        }),
        encodeOptions(pick(provider, PROVIDER_OPTIONS)),
        definitionsText(this.#tools, (index) => origins[index - tools.length]),
        this.#script?.handle,
        parent?.handle,
        limiter,
      );
      this.sessionId = native.sessionId(this.#handle);
      this.#confirmation = confirmationHandler ?? confirmationHandlerFactory?.(this.sessionId);
    } catch (error) {
      unregister(this.#key);
      throw error;
    }
  }

  /** Opens a Session and runs the hooks of its start; when one of them objects, it is closed again. */
  static async open(profile, options, parent) {
    const session = new Session(profile, options, parent);
    if (!session.#hooks.has('SessionStart')) return session;
    try {
      await session.#operations.run(session, (id) => call(native.begin, session.#handle, id));
    } catch (failure) {
      await session.close().catch(() => {});
      throw failure;
    }
    return session;
  }

  get isClosed() {
    return this.#closed;
  }

  get messages() {
    return JSON.parse(call(native.messages, this.#handle));
  }

  async send(message, options = {}) {
    requireOptions('send', options);
    const { signal, maxTurns, context, expectedRequestId } = options;
    if (signal !== undefined && !(signal instanceof AbortSignal)) {
      throw new ConfigError('signal must be an AbortSignal');
    }
    const input = { content: message, maxTurns, context, expectedRequestId, hasSignal: signal !== undefined };
    const submission = JSON.parse(call(native.send, this.#handle, encodeOptions(input)));
    // The request before may never have been read to its end; its signal has nothing to say about this one.
    this.#unfollow();
    if (signal !== undefined) this.#follow(signal, submission.requestId);
    return submission;
  }

  stream(options = {}) {
    requireOptions('stream', options);
    return new EventStream(this, options);
  }

  async abort() {
    await this.#operations.run(this, (id) => call(native.abort, this.#handle, id));
  }

  /** Concurrent calls share one attempt; after a failure it can be tried again. */
  close() {
    if (this.#closed) return Promise.resolve();
    this.#closing ??= this.#close().finally(() => {
      this.#closing = undefined;
    });
    return this.#closing;
  }

  async #close() {
    await this.#operations.run(this, (id) => call(native.close, this.#handle, id));
    this.#closed = true;
    this.#unfollow();
    // While something of this Session is awaited its answer may be under way; it is forgotten with the Session then.
    if (this.holds === 0) unregister(this.#key);
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  async fork(options = {}) {
    requireOptions('fork', options);
    if (options.messageId !== undefined) {
      throw new ConfigError('fork({ messageId }) needs a stored transcript, which this version does not keep');
    }
    if (this.#closed) throw new SdkError('Session is closed', { code: 'SESSION_CLOSED' });
    const inherited = { ...this.#options, model: this.#model, defaultContext: this.#defaultContext };
    inherited.permissionMode = call(native.permissionMode, this.#handle);
    return await Session.open(this.#profile, inherited, { handle: this.#handle });
  }

  getPendingInputs() {
    const pending = native.pendingInput(this.#handle);
    if (pending === null) return [];
    const { inputId, requestId, content, acceptedAt } = JSON.parse(pending);
    return [{ inputId, content, priority: 'next', targetRequestId: requestId, acceptedAt }];
  }

  setPermissionMode(permissionMode) {
    this.#configure({ permissionMode });
  }

  async setModel(model) {
    if (typeof model !== 'string') throw new ConfigError('model must be a string');
    this.#configure({ model });
    if (model.trim() !== '') this.#model = model.trim();
  }

  setMaxTurns(maxTurns) {
    this.#configure({ maxTurns });
  }

  setDefaultContext(context) {
    const copy = copied(context);
    this.#configure({ defaultContext: copy });
    this.#defaultContext = copy;
  }

  getDefaultContext() {
    return structuredClone(this.#defaultContext);
  }

  async supportedModels() {
    const { provider, maxContextTokens } = this.#options;
    return [
      {
        id: 'default',
        name: this.#model,
        provider: provider.type,
        ...(maxContextTokens !== undefined && { maxContextTokens }),
      },
    ];
  }

  #configure(change) {
    for (const [name, value] of Object.entries(change)) {
      if (value == null) throw new ConfigError(`${name} must be given, got ${value}`);
    }
    call(native.configure, this.#handle, encodeOptions(change));
  }

  // ---- what the stream needs

  /** Starts the accepted request and gives its native stream; undefined when its signal fired before it began. */
  startStream(stream, includeThinking) {
    if (this.#signal?.fired) {
      call(native.abortRequest, this.#handle, this.#signal.requestId);
      this.#unfollow();
      return undefined;
    }
    const started = call(native.start, this.#handle, includeThinking);
    if (this.#signal !== undefined) this.#signal.stream = stream;
    this.#streams.add(stream);
    return started;
  }

  leaveStream(started) {
    return this.#operations.run(this, (id) => call(native.leave, this.#handle, started, id));
  }

  streamEnded(stream) {
    this.#streams.delete(stream);
    if (this.#signal?.stream === stream) this.#unfollow();
  }

  /** The whole error behind an `error` event: the event itself carries only its message and code. */
  errorBehind(event) {
    const failure = native.lastFailure(this.#handle);
    const whole = failure === null ? undefined : JSON.parse(failure);
    return errorOf(whole?.message === event.message ? whole : event);
  }

  /** Tool calls and turns of the last request. */
  lastRequest() {
    return JSON.parse(native.lastRequest(this.#handle));
  }

  // ---- the caller's signal

  #follow(signal, requestId) {
    const followed = { signal, requestId, stream: undefined, fired: signal.aborted, listener: undefined };
    followed.listener = () => {
      followed.fired = true;
      // Before the stream begins there is nothing to cancel: the stream then ends at once.
      if (followed.stream !== undefined) call(native.abortRequest, this.#handle, requestId);
    };
    signal.addEventListener('abort', followed.listener, { once: true });
    this.#signal = followed;
  }

  #unfollow() {
    this.#signal?.signal.removeEventListener('abort', this.#signal.listener);
    this.#signal = undefined;
  }

  // ---- the mailbox

  refill() {
    native.refill(this.#handle);
  }

  dispatch(entry) {
    switch (entry[0]) {
      case Entry.CALL:
        this.#called(entry);
        break;
      case Entry.ABORT:
        this.#calls.abort(entry);
        break;
      case Entry.DONE:
        this.#operations.settle(entry);
        break;
      case Entry.READY:
        for (const stream of this.#streams) stream.ready();
        break;
      case Entry.LOG:
        if (!this.#closed) tell(this.#logger, entry);
        break;
      case Entry.FORGET:
        this.#toolLifecycle.forget(entry);
        break;
    }
  }

  #called([, id, port, ...args]) {
    let answer;
    try {
      switch (port) {
        case 'tool':
          answer = this.#runTool(this.#calls.open(id), ...args);
          break;
        case 'behavior': {
          const [index, params] = args;
          answer = this.#tools[index].resolveBehavior(params);
          break;
        }
        case 'validate':
        case 'checkPermissions': {
          const [index, params, permissionMode] = args;
          const definition = this.#tools[index];
          const context = this.#context(this.#calls.open(id), definition, undefined, permissionMode);
          answer = Promise.resolve(definition[port](params, context)).then((found) => found ?? null);
          break;
        }
        case 'permission':
          answer = this.#permission(withSignal(args[0], 'signal', this.#calls.open(id)));
          break;
        case 'confirmation':
          answer = this.#confirm(withSignal(args[0], 'abortSignal', this.#calls.open(id)));
          break;
        case 'middleware':
          answer = this.#runMiddleware(this.#calls.open(id), ...args);
          break;
        case 'lifecycle':
          answer = this.#toolLifecycle.handle(...args);
          break;
        case 'hook': {
          const [event, index, input] = args;
          const callback = this.#hooks.get(event)[index];
          answer = callback(withSignal(hookInput(input), 'abortSignal', this.#calls.open(id)));
          break;
        }
        case 'model':
          answer = this.#models.run(this.#calls.open(id), ...args);
          break;
        default:
          throw new SdkError(`the native core called an unknown port ${port}`);
      }
    } catch (thrown) {
      this.#settle(id, THROWN, thrownText(thrown));
      return;
    }
    // Adopted by a promise of ours: a thenable or a subclass may do anything in its own `then`.
    new Promise((resolve) => resolve(answer)).then(
      (value) => this.#answered(id, port, value),
      (thrown) => this.#settle(id, THROWN, thrownText(thrown)),
    );
  }

  #answered(id, port, value) {
    let text;
    try {
      if (port === 'tool' && typeof value === 'string') {
        this.#settle(id, TEXT_RESULT, value);
        return;
      }
      text = value instanceof WholeResult ? WHOLE_RESULT + encode(value.result, 'the result') : encode(value, 'result');
    } catch (thrown) {
      this.#settle(id, THROWN, thrownText(thrown));
      return;
    }
    this.#settle(id, JSON_RESULT, text);
  }

  /** Answers that come in one go (the calls of a turn crossed together) go back together. */
  #settle(id, kind, text) {
    this.#calls.close(id);
    if (this.#answers.texts.length === 0) queueMicrotask(() => this.#settleAll());
    this.#answers.heads.push(id, kind);
    this.#answers.texts.push(text);
  }

  #settleAll() {
    const { heads, texts } = this.#answers;
    this.#answers = { heads: [], texts: [] };
    const more =
      texts.length === 1
        ? native.settle(this.#handle, heads[0], heads[1], texts[0])
        : native.settleAll(this.#handle, heads, texts);
    if (more) drain(false);
  }

  #confirm(details) {
    if (typeof this.#confirmation?.requestConfirmation !== 'function') {
      throw new TypeError('confirmationHandler must be an object with requestConfirmation(details)');
    }
    return this.#confirmation.requestConfirmation(details);
  }

  #runTool(open, index, params, _toolUseId, messageId, permissionMode) {
    const definition = this.#tools[index];
    const context = this.#context(open, definition, messageId, permissionMode);
    const execute = authoredExecute(definition);
    if (execute !== undefined) return execute(params, context);
    return this.#drainExecution(open, definition.execute(params, context), `execute of tool ${definition.name}`);
  }

  #runMiddleware(open, toolName, input, messageId, permissionMode) {
    const context = this.#context(open, {}, messageId, permissionMode);
    const core = {
      start: (name, sameContext, text) => call(native.coreStart, this.#handle, open.id, name, sameContext, text),
      next: () => this.#operations.runUnheld((operation) => call(native.coreNext, this.#handle, open.id, operation)),
    };
    const request = Object.freeze({ toolName, input: deepFreeze(input), context });
    const execution = aroundTools(this.#toolMiddleware, core, request);
    return this.#drainExecution(open, execution, `middleware around ${toolName}`);
  }

  /** Runs the generator protocol: yields cross one by one, the result is a whole ToolResult. */
  async #drainExecution(open, execution, what) {
    if (typeof execution?.next !== 'function') throw new TypeError(`${what} must return an async generator`);
    const result = await collectToolExecution(execution, async (said) => {
      const item = encode(said, 'the yield');
      await this.#operations.runUnheld((operation) => call(native.emit, this.#handle, open.id, operation, item));
      // A generator that does not look at its signal is left at its next yield.
      if (open.reason !== undefined) throw open.reason;
    });
    return new WholeResult(result);
  }

  /** The frozen context of a call. Costly parts are made when somebody looks at them. */
  #context(open, { services = [], requiresRuntime }, messageId, permissionMode) {
    const session = this;
    let snapshot;
    const context = {
      sessionId: this.sessionId,
      messageId,
      permissionMode,
      confirmationHandler: this.#confirmation,
      get signal() {
        return signalOf(open);
      },
      get contextSnapshot() {
        snapshot ??= deepFreeze(JSON.parse(call(native.snapshot, session.#handle, open.id)));
        return snapshot;
      },
      get bladeConfig() {
        return session.#bladeConfig();
      },
    };
    for (const name of services) {
      context[name] = name === 'discoverableCatalog' ? this.#catalog(open) : this.#options[name];
    }
    if (requiresRuntime) context.runtime = NO_LEASE;
    return Object.freeze(context);
  }

  /** The tools that could be discovered in the turn of a call. */
  #catalog(open) {
    let entries;
    return Object.freeze({
      list: () => {
        if (entries === undefined) {
          const text = native.discoverable(this.#handle, open.id);
          if (text === null) throw new SdkError('the call of this catalog has ended', { code: 'TOOL_EXECUTION_ERROR' });
          entries = deepFreeze(JSON.parse(text));
        }
        return entries;
      },
    });
  }

  #bladeConfig() {
    const { provider, temperature, maxTurns, toolTimeoutMs } = this.#options;
    return deepFreeze({
      models: [{ id: 'default', provider: provider.type, model: this.#model }],
      currentModelId: 'default',
      ...pick({ temperature, maxTurns, toolTimeoutMs }, ['temperature', 'maxTurns', 'toolTimeoutMs']),
    });
  }
}

/** A `ToolResult` as the generator protocol returned it. */
class WholeResult {
  constructor(result) {
    if (result === null || typeof result !== 'object' || !['success', 'error'].includes(result.status)) {
      throw new TypeError('a tool execution must return a ToolResult with status "success" or "error"');
    }
    this.result = { ...result, model: result.model ?? null };
    if (result.error instanceof Error) this.result.error = { ...describe(result.error), type: 'execution_error' };
  }
}

/** The runtime capability of a Session without an execution lease. */
const NO_LEASE = Object.freeze({
  async assertExecutionLease() {},
  async runWithExecutionLease(operation) {
    return await operation();
  },
});

/** The same object with the call's signal under `name`, made when somebody looks at it. */
function withSignal(request, name, open) {
  Object.defineProperty(request, name, { enumerable: true, get: () => signalOf(open) });
  return request;
}

function deepFreeze(value) {
  if (value !== null && typeof value === 'object') {
    for (const item of Object.values(value)) deepFreeze(item);
    Object.freeze(value);
  }
  return value;
}
