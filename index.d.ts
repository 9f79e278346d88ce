/**
 * Public types of `@blade-ai/agent-sdk`: agents, Sessions and tools on a native Rust core.
 *
 * ```ts
 * import { createAgent, defineTool } from '@blade-ai/agent-sdk';
 * import Type from 'typebox';
 *
 * const add = defineTool({
 *   name: 'Add',
 *   description: 'Add two numbers',
 *   parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
 *   async execute({ a, b }) {
 *     return a + b;
 *   },
 * });
 *
 * const agent = await createAgent({ model: 'gpt-5', apiKey: 'sk-…', tools: [add] });
 * const response = await agent.send('What is 17 + 25?');
 * console.log(await response.text());
 * await agent.close();
 * ```
 *
 * Contents, in order: JSON, agents, Sessions, stream events, tools, permissions, messages and models, runtime context,
 * memory, errors, middleware, process lifecycle, constants, ids. The whole entry point is one file so that
 * it can be read as its reference.
 *
 * Conventions. Durations are whole milliseconds in `…Ms` fields (`duration` fields are milliseconds too); times are
 * milliseconds since the epoch. Every `Promise` rejects with an {@link SdkError} (or {@link AbortError}) that carries a
 * stable `code`. Errors of tools are not rejections: they are results the model reads. A `Contract` list at a callback
 * says who awaits it, what throwing does and what happens when it never settles.
 *
 * The types need TypeScript 5.2 or newer, `AbortSignal` from `lib.dom` or `@types/node`, and `typebox` 1.x.
 */

/// <reference lib="esnext.disposable" />

import type { Static, TSchema } from 'typebox';

/** Any value JSON can express. `undefined`, functions, `bigint`, class instances and cycles are not among them. */
export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

/**
 * A JSON object.
 *
 * An `interface` is not assignable to it, because TypeScript gives interfaces no index signature: use a `type` for data
 * that tools return.
 */
export type JsonObject = { [key: string]: JsonValue };

/**
 * Creates an agent: the high-level way to run a conversation with tools.
 *
 * The result is a Session whose `send` answers with an {@link AgentResponse} instead of leaving the stream to you.
 *
 * @throws {ConfigError} An option has a value that cannot be honoured; the message names it and what would work.
 * @throws {SdkError} Two tools share a name or alias, or a schema cannot be compiled (`TOOL_DEFINITION_ERROR`).
 * @throws {ProviderRegistryError} `provider` names a type without an adapter (`PROVIDER_ADAPTER_NOT_FOUND`).
 */
export declare function createAgent(options: AgentOptions): Promise<Agent>;

/**
 * Options of {@link createAgent}. Required: `model`, and either `apiKey` or a `provider` object that knows how to reach
 * the model.
 */
export type AgentOptions = AgentKeyOptions | AgentConnectionOptions;

/** Options of an agent whose provider is named by its type. */
export interface AgentKeyOptions extends AgentBaseOptions {
  /** Provider type. Default `'openai'`. */
  provider?: ProviderType;
  /** Key for the provider. Never logged and never put in an error, an event or a child process. */
  apiKey: string;
}

/** Options of an agent whose provider is a connection, for instance a `scriptedProvider` of the testing entry. */
export interface AgentConnectionOptions extends AgentBaseOptions {
  /** How to reach the model. `apiKey`, `baseUrl` and `advanced.connection` fill in what it leaves out. */
  provider: ProviderConnectionConfig;
  /** Key for the provider. Default: that of `provider`. */
  apiKey?: string;
}

/** What {@link AgentOptions} have in common. */
export interface AgentBaseOptions {
  /** Model name as the provider knows it, for instance `'gpt-5'`. */
  model: string;
  /**
   * Which tools and host access the agent starts with. Default: `'local'` if `filesystem` is given, else `'server'`.
   */
  profile?: AgentProfile;
  /** Base URL of the provider's API, version segment included. Default: the provider's own. */
  baseUrl?: string;
  /** Tools made by {@link defineTool}. The list is copied. Default: none. */
  tools?: readonly ToolDefinition[];
  /** Instructions in front of the conversation. Default: none. */
  systemPrompt?: string;
  /** Sampling temperature. Default 0.7. */
  temperature?: number;
  /** Limit of tokens a model call may answer with. Default: the provider's own. */
  maxOutputTokens?: number;
  /** Limit of model calls a request may make. Default 200. */
  maxTurns?: number;
  /** Directories the agent's tools may touch. Given, it selects the `'local'` profile. Default: none. */
  filesystem?: AgentFilesystemOptions;
  /** Everything else a Session offers, and the permission policy. */
  advanced?: AgentAdvancedOptions;
}

/**
 * - `'local'`: the built-in tools are registered and work within `filesystem`.
 * - `'server'`: only the tools you pass; no access to the host.
 */
export type AgentProfile = 'local' | 'server';

/** Directories the agent's tools may touch. Becomes `capabilities.filesystem` of the Session's default context. */
export interface AgentFilesystemOptions {
  /** Absolute paths of the directories that may be read and written. Symbolic links cannot lead out of them. */
  roots: readonly string[];
  /** Absolute directory that relative paths start from; must lie inside a root. Nothing is taken from the process. */
  cwd?: string;
}

/**
 * The options of a Session that {@link AgentOptions} do not already have, with the policy in `permission`.
 *
 * `permissionMode` and `permissionHandler` are not accepted here: `permission` is the only policy of an agent.
 */
export interface AgentAdvancedOptions
  extends Omit<
    SessionOptions,
    | 'provider'
    | 'model'
    | 'temperature'
    | 'maxOutputTokens'
    | 'tools'
    | 'systemPrompt'
    | 'maxTurns'
    | 'permissionMode'
    | 'permissionHandler'
  > {
  /** Connection settings besides the type, the key and the base URL. */
  connection?: Omit<ProviderConnectionConfig, 'type' | 'apiKey' | 'baseUrl'>;
  /** Which tool calls may run. Default `'default'`. */
  permission?: AgentPermission;
}

/** A preset, or a callback that decides each call. */
export type AgentPermission = AgentPermissionPreset | AgentPermissionCallback;

/**
 * Named policies, each a {@link PermissionMode}: `'default'` → `default`, `'accept-edits'` → `autoEdit`,
 * `'bypass-permissions'` → `yolo`, `'plan'` → `plan`.
 */
export type AgentPermissionPreset = 'default' | 'accept-edits' | 'bypass-permissions' | 'plan';

/**
 * Decides one tool call of an agent. The Session runs in mode `yolo` underneath, so a call this allows needs no other
 * consent.
 *
 * TypeScript widens a lone literal of an async arrow function: write `async () => 'deny' as const`.
 *
 * **Contract**
 * - Awaited by the pipeline before the tool starts; calls of one turn may ask in parallel.
 * - May throw or reject: the call is denied and the message reaches the model.
 * - May wait as long as it likes, for a human for instance. When `request.signal` aborts, the request is cancelled at
 *   once; until this settles, new tool calls are refused and `close()` rejects with code `SESSION_BUSY`.
 */
export type AgentPermissionCallback = (
  request: AgentPermissionRequest,
) => AgentPermissionDecision | Promise<AgentPermissionDecision>;

/** What an {@link AgentPermissionCallback} judges: a {@link PermissionHandlerRequest} with `toolKind` named `kind`. */
export interface AgentPermissionRequest extends Omit<PermissionHandlerRequest, 'toolKind'> {
  /** Kind of the call, after parameter-dependent narrowing. */
  kind: ToolKind;
}

/** A word, or a full result. A bare `'deny'` tells the model "Denied by permission policy". */
export type AgentPermissionDecision = PermissionDecision | PermissionResult;

/** A Session whose `send` answers with an {@link AgentResponse}; the stream belongs to the response. */
export interface Agent extends Omit<ISession, 'send' | 'stream'> {
  /**
   * Sends a message. Resolves as soon as the input is accepted; nothing runs until the response is consumed.
   *
   * @throws {SessionInputError} `SESSION_STEERING_UNAVAILABLE`: the previous response has not settled; consume it
   *   first.
   * @throws {SdkError} `SESSION_CLOSED`.
   */
  send(message: UserMessageContent, options?: SendOptions): Promise<AgentResponse>;
}

/**
 * The answer to one message of an {@link Agent}.
 *
 * The request starts on the first use of `text`, `textStream`, `stream` or `on`. All events are kept for the life of
 * the response, so every consumer sees all of them.
 */
export declare class AgentResponse {
  private constructor();

  /** Ids of the accepted request. */
  readonly submission: AgentResponseSubmission;

  /** Whether the request has ended, well or badly. False until something consumes the response. */
  readonly isSettled: boolean;

  /**
   * The whole answer text. Calling it again gives the same text without another model call. A cancelled request gives
   * the text that had arrived.
   *
   * @throws {SdkError} The request failed; `code` is the code of its `error` event.
   */
  text(): Promise<string>;

  /**
   * The answer's text deltas in order. If no delta arrived, the final text comes as one piece. Throws as `text` does.
   */
  textStream(): AsyncGenerator<string, void, void>;

  /** All events from the first one on, then live. May be called many times; each caller sees the same events. */
  stream(): AsyncGenerator<AgentResponseEvent, void, void>;

  /** Listens to one type of event and starts the request. Earlier events of the type are delivered too. */
  on<TType extends AgentResponseEventType>(type: TType, listener: AgentResponseListener<TType>): this;
}

/** An event of an {@link AgentResponse}. */
export type AgentResponseEvent = SessionStreamEvent;

/** Types an {@link AgentResponse} can be listened to for. */
export type AgentResponseEventType = SessionStreamEventType;

/**
 * Receives the events of one type.
 *
 * **Contract**
 * - Awaited before the next event is handled, so a slow listener slows the request down.
 * - May throw or reject: the response fails with that error.
 * - Must settle: while it does not, the response does not go on.
 */
export type AgentResponseListener<TType extends AgentResponseEventType = AgentResponseEventType> = (
  event: Extract<SessionStreamEvent, { type: TType }>,
) => void | Promise<void>;

/** The submission of an {@link AgentResponse}: always a started one. */
export type AgentResponseSubmission = Extract<InputSubmission, { status: 'started' }>;

/**
 * Creates a Session of the server profile: only the tools you pass, no access to the host. The local profile, with the
 * built-in tools, is `createSession` of `@blade-ai/agent-sdk/advanced`.
 *
 * The Session is fully initialised when the promise resolves. Close it, or hold it with `await using`.
 *
 * @throws {ConfigError} An option has a value that cannot be honoured.
 * @throws {SdkError} Two tools share a name or alias, or a schema cannot be compiled (`TOOL_DEFINITION_ERROR`).
 * @throws {ProviderRegistryError} `provider.type` has no adapter (`PROVIDER_ADAPTER_NOT_FOUND`).
 */
export declare function createSession(options: SessionOptions): Promise<ISession>;

/**
 * Sends one message to a Session of its own, waits for the result and closes the Session, whatever happens.
 *
 * @throws {SdkError} The request failed; `code` is the code of its `error` event.
 */
export declare function prompt(message: UserMessageContent, options: SessionOptions): Promise<PromptResult>;

/** Options of a Session. Only `provider` and `model` are required. */
export interface SessionOptions {
  /** How to reach the model. */
  provider: ProviderConnectionConfig;
  /** Model name as the provider knows it. */
  model: string;
  /** Sampling temperature. Default 0.7. */
  temperature?: number;
  /** Limit of tokens a model call may answer with. Default: the provider's own. */
  maxOutputTokens?: number;
  /** Context window of the model in tokens, reported in {@link TokenUsage}. Default 128000. */
  maxContextTokens?: number;
  /** Options passed through to the provider, keyed by provider type. Default: none. */
  providerOptions?: ModelProviderOptions;

  /** Exact names of the tools that may be registered. Omitted: all. Empty: none. */
  allowedTools?: readonly string[];
  /** Exact names or aliases of tools that are never registered; stronger than `allowedTools`. Default: none. */
  disallowedTools?: readonly string[];
  /** Hides registered tools from the model by where they come from. Default: no limit. */
  toolSourcePolicy?: ToolSourcePolicy;
  /** Tools made by {@link defineTool}, registered with source `custom` and trust `workspace`. Default: none. */
  tools?: readonly ToolDefinition[];

  /** What may run without a question. Default `'default'`. */
  permissionMode?: PermissionMode;
  /**
   * Rules that hold in every mode and whatever a handler says: `deny` refuses before anybody is asked, `ask` makes a
   * call need confirmation, `allow` spares the question that the mode or a handler would ask; see docs/permissions.md.
   * A rule that means nothing is a `CONFIG_ERROR`. Default: none.
   */
  permissions?: PermissionsConfig;
  /** Decides calls before the mode does. Default: none. */
  permissionHandler?: PermissionHandler;
  /** Asks a human where a call needs confirmation. Default: none, see `confirmationFallback`. */
  confirmationHandler?: ConfirmationHandler;
  /**
   * Makes the `confirmationHandler` once the Session's id exists; used only if `confirmationHandler` is not given.
   *
   * **Contract**
   * - Called once, synchronously, while the Session is created; not awaited.
   * - May throw: `createSession` rejects with that error.
   */
  confirmationHandlerFactory?: (sessionId: SessionId) => ConfirmationHandler;
  /**
   * What happens to a call that needs confirmation when no confirmation handler exists. `'deny'` gives the model a
   * `permission_denied` result that says how to allow it; `'allow'` runs the call. Default `'deny'`.
   */
  confirmationFallback?: 'deny' | 'allow';

  /** Instructions in front of the conversation. Default: none. */
  systemPrompt?: string;
  /**
   * Limit of model calls a request may make, in every permission mode. Reaching it fails the request with code
   * `MAX_TURNS_EXCEEDED`. Default 200.
   */
  maxTurns?: number;
  /**
   * Deadline of one tool invocation in milliseconds, 1 to 2147483647. It starts after permission and waiting, aborts
   * the tool's signal and gives a `timeout_error` result. Default 600000 (10 minutes).
   */
  toolTimeoutMs?: number;
  /** How many tool calls run at once: limits of this Session, or a limiter that it shares with others. */
  toolConcurrency?: ToolConcurrency | ToolLimiter;
  /**
   * Largest result of a custom tool in bytes of JSON text; a larger one becomes an `execution_error` that names the
   * limit. Default 10485760 (10 MiB).
   */
  maxToolResultBytes?: number;

  /** Where results too large for the conversation are kept. Default: a private temporary directory. */
  artifacts?: ArtifactOptions;

  /** Runtime context of every request: file system roots, working directory, environment. Default: empty. */
  defaultContext?: RuntimeContext;
  /** Makes the model answer in JSON of a schema. Default: free text. */
  outputFormat?: OutputFormat;
  /** Callbacks around messages, tool calls and the life of the Session. Default: none. */
  hooks?: InlineHooks;
  /** Deadline of all callbacks of one event together, in milliseconds; 1 to 2147483647. Default 600000. */
  hookTimeoutMs?: number;
  /** The same for `SessionEnd`. Default 3000. */
  sessionEndHookTimeoutMs?: number;
  /** Layers around model calls. They survive `setModel`, and forks have them too. Default: none. */
  middleware?: AgentMiddlewareConfig;
  /**
   * Plugins; their names differ. Their hooks run after those of `hooks`, their tools are registered after `tools`, and
   * their middleware lies inside of `middleware`, that of earlier plugins outside of that of later ones.
   */
  plugins?: readonly AgentPlugin[];
  /** Observer of the durable boundaries of tool calls. Default: none. */
  toolLifecycle?: ToolExecutionLifecycle;
  /** Memory for tools that declare the `memoryManager` service. Default: none; such tools are not registered. */
  memoryManager?: MemoryManager;
  /** Is told what the Session does. Default: none; nothing is said, and nothing is ever printed. */
  logger?: AgentLogger;
}

/**
 * Where results too large for the conversation are kept, as files of JSON (`toolName`, `sessionId`, `modelContent`,
 * `createdAt`) that only their owner can read. The model is told the path and the beginning. A result that cannot be
 * stored is cut instead.
 */
export interface ArtifactOptions {
  /**
   * An absolute path; missing directories are made. Each Session makes a directory of its own in it. The model can read
   * artifacts itself only inside of the roots of its runtime context. Default: the temporary directory of the system.
   */
  directory?: string;
  /** Whether artifacts stay when the Session closes or is collected. Default false: they are removed. */
  keep?: boolean;
}

/**
 * Is told what a Session does: steps of tool calls, hooks, retries, how requests end.
 *
 * ```ts
 * const logger: AgentLogger = {
 *   level: 'info',
 *   log: ({ level, category, message, args }) => console.error(level, category, message, ...(args ?? [])),
 * };
 * ```
 */
export interface AgentLogger {
  /**
   * Less important entries are not made, which costs nothing. Read once, when the Session is created; a value that is no
   * {@link LogLevelName} counts as `'debug'`. Default `'debug'`.
   */
  readonly level?: string;
  /**
   * Takes an entry.
   *
   * **Contract**
   * - Not awaited: entries arrive in order, a moment after what they are about, and keep neither the process nor the
   *   Session alive. The last ones of a Session arrive before `close()` resolves, and none after it.
   * - May throw or reject: nothing happens.
   * - When more than 1000 entries wait because the thread is busy, the oldest are dropped; one entry says how many.
   */
  log(entry: LogEntry): unknown;
}

/** How important a {@link LogEntry} is: a step, news, a problem that was dealt with, a defect. */
export type LogLevelName = 'debug' | 'info' | 'warn' | 'error';

/**
 * What a logger is told.
 *
 * Entries hold names, ids, codes, counts and times, and messages of errors; never arguments or results of tools, texts of
 * the conversation, or headers. The provider's key and header values, values of environment variables whose names say
 * that they are secret (`…_KEY`, `…_TOKEN`, `…PASSWORD` and the like), and what looks like a credential are replaced by
 * `***`. Texts are cut after 2000 characters.
 */
export interface LogEntry {
  /** How important it is. */
  level: LogLevelName;
  /** The part of the package that speaks, for instance `session`, `pipeline`, `hooks` or `provider`. */
  category: string;
  /** A sentence, for people. Its words may change with any version. */
  message: string;
  /** When, in milliseconds since the Unix epoch. */
  timestamp: number;
  /** The Session. */
  sessionId?: SessionId;
  /**
   * Facts, in one object. A step of a tool call has `requestId`, `callId`, `tool`, `kind`, `stage` (`resolve`, `validate`,
   * `permit`, `schedule`, `invoke`, `settle`, `hooks`; `call` is the whole), `outcome` (`ok`, `error`, `refused`,
   * `answered`), `errorType`, `errorCode` and `durationMs`.
   */
  args?: JsonValue[];
}

/**
 * Limits of the tool calls that run at once, per {@link ToolKind}: positive integers up to 100000. Calls beyond them wait
 * in order of arrival; waiting does not count toward `toolTimeoutMs` and ends when the request is cancelled.
 *
 * Whatever the limits, a call whose input has a `file_path` or `notebook_path` has that file to itself unless it is
 * read-only: it waits for others, at most 30 seconds, in order of arrival. All names of a file count as one: spellings,
 * symbolic and hard links, and names that differ in case alone.
 */
export interface ToolConcurrency {
  /** Read-only calls. Default 10. */
  readonly?: number;
  /** Writing calls. Default 10. */
  write?: number;
  /** Executing calls. Default 3. */
  execute?: number;
  /** Calls of one kind that may wait; one more is answered with an error result at once. Default 1000. */
  queue?: number;
}

declare const limiterBrand: unique symbol;

/** Slots and file locks of several Sessions; made by {@link createToolLimiter}. Opaque. */
export interface ToolLimiter {
  readonly [limiterBrand]: true;
}

/**
 * A limiter for several Sessions of this thread: give it to each as `toolConcurrency`.
 *
 * The calls of all its Sessions share the slots, in order of arrival whichever Session they belong to, and they wait for
 * each other's files as the calls of one Session do. Closing a Session takes back what it holds and waits for; the others
 * do not notice. Forks share the limiter of their Session. It needs no closing: it is freed with its last Session.
 *
 * @param limits - Positive integers up to 100000; the defaults are those of a Session.
 * @throws ConfigError - A limit is no such number or has another name.
 */
export declare function createToolLimiter(limits?: ToolConcurrency): ToolLimiter;

/**
 * A conversation with a model that can call tools.
 *
 * One request is in flight at a time: `send` accepts it, `stream` runs it and yields its events.
 *
 * ```ts
 * await session.send('List the TODOs of this repository');
 * for await (const event of session.stream()) {
 *   if (event.type === 'content') process.stdout.write(event.delta);
 * }
 * ```
 */
export interface ISession extends AsyncDisposable {
  /** Id of the Session. */
  readonly sessionId: SessionId;
  /**
   * The conversation so far. A copy: changing it changes nothing. While tools can be discovered, a system message with the
   * provenance `catalog` lists them in front of it.
   */
  readonly messages: readonly ConversationMessage[];
  /** Whether `close` has completed. */
  readonly isClosed: boolean;

  /**
   * Accepts a message. Nothing runs before `stream`.
   *
   * This version starts a request or refuses; it does not steer or queue while another request is in flight.
   *
   * @throws {SessionInputError} `SESSION_STEERING_UNAVAILABLE`: a request is in flight. `SESSION_REQUEST_MISMATCH`:
   *   `expectedRequestId` is not the active request.
   * @throws {SdkError} `SESSION_CLOSED`.
   */
  send(message: UserMessageContent, options?: SendOptions): Promise<InputSubmission>;

  /**
   * Runs the pending request and yields its events, see {@link SessionStreamEvent}.
   *
   * The producer waits while the consumer is behind. Leaving the loop early (`break`, `return`, `throw`) cancels the
   * request and waits for its cleanup. A failure of the request is an `error` event, not a rejection.
   *
   * @throws {SdkError} On the first `next()`: `SESSION_NO_PENDING_MESSAGE` (call `send` first) or `SESSION_CLOSED`.
   */
  stream(options?: StreamOptions): AsyncGenerator<SessionStreamEvent, void, void>;

  /**
   * Cancels the request and waits until its model call, its tools and its callbacks have settled, for at most 5 seconds:
   * what ignores its signal for longer keeps the Session from starting tools and from closing until it settles. The
   * stream ends at once, without `usage`, `result` or `error`; events already produced stay readable. Does nothing when
   * idle. May be awaited inside the stream loop, but not inside a tool or a callback, which it would wait for.
   */
  abort(): Promise<void>;

  /**
   * Ends the Session: cancels work in flight, waits for it and releases everything. Safe to call again and from several
   * places; concurrent calls share one outcome.
   *
   * @throws {SdkError} `SESSION_BUSY`: a tool or callback that ignored its signal is still running. Call again later.
   */
  close(): Promise<void>;

  /** Same as {@link ISession.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * A new Session in memory with the same options, the current default context, the conversation so far and what tools
   * changed for the rest of the Session.
   *
   * @throws {ConfigError} `messageId` is given, which this version cannot honour.
   */
  fork(options?: ForkOptions): Promise<ISession>;

  /** Accepted inputs that no model call has seen yet, oldest first. Copies. */
  getPendingInputs(): PendingSessionInput[];

  /** Sets the mode of later requests. */
  setPermissionMode(mode: PermissionMode): void;
  /** Sets the model of later calls. A blank name is ignored. */
  setModel(model: string): Promise<void>;
  /** Sets the turn limit of later requests; a positive integer, else {@link ConfigError}. */
  setMaxTurns(maxTurns: number): void;
  /** Replaces the default context of later requests, and forgets what tools patched of it. */
  setDefaultContext(context: RuntimeContext): void;
  /** The default context; a copy. */
  getDefaultContext(): RuntimeContext;

  /** The configured model, with id `default`. */
  supportedModels(): Promise<ModelInfo[]>;
}

/**
 * What a user says: text, or text and images in order.
 *
 * An image is an `http(s):` URL or a base64 `data:` URL.
 */
export type UserMessageContent = string | ModelContent[];

/** Options of one `send`. */
export interface SendOptions {
  /** Cancels the request, as `abort` does. A signal that is already aborted cancels it before its first model call. */
  signal?: AbortSignal;
  /** Turn limit of this request instead of the Session's. */
  maxTurns?: number;
  /** Merged over the Session's default context for this request; see {@link mergeContext}. */
  context?: RuntimeContext;
  /** When the input applies if a request is in flight. Default `'next'`. */
  priority?: InputPriority;
  /** Refuses the input unless this request is the active one. */
  expectedRequestId?: RequestId;
}

/** What became of a sent input. */
export type InputSubmission =
  /** A request was created; call `stream` to run it. */
  | { status: 'started'; inputId: InputId; requestId: RequestId }
  /** The input joins the request in flight. */
  | { status: 'steered'; inputId: InputId; requestId: RequestId; priority: 'now' | 'next' }
  /** The input waits for the request in flight to end. */
  | { status: 'queued'; inputId: InputId; priority: 'later' };

/** Options of one `stream`. */
export interface StreamOptions {
  /** Whether `thinking` events are delivered. Default false. */
  includeThinking?: boolean;
}

/** Options of {@link ISession.fork}. */
export interface ForkOptions {
  /** Last message to keep. Default: all. This version keeps all and refuses another value with {@link ConfigError}. */
  messageId?: MessageId;
}

/** An accepted input that no model call has seen yet. */
export interface PendingSessionInput {
  /** Id of the input. */
  inputId: InputId;
  /** What was sent. */
  content: UserMessageContent;
  /** When it applies. */
  priority: InputPriority;
  /** The request it was meant for, if any. */
  targetRequestId?: RequestId;
  /** When it was accepted, in milliseconds since the epoch. */
  acceptedAt: number;
}

/** What {@link prompt} resolves to. */
export interface PromptResult {
  /** The final text; with `outputFormat`, the JSON text. */
  result: string;
  /** All tool calls of the request, in the order the model made them. */
  toolCalls: ToolExecutionRecord[];
  /** Token counts of the request. */
  usage: TokenUsage;
  /** Time from sending to the result, in milliseconds. */
  duration: number;
  /** Number of turns the request took. */
  turnsCount: number;
}

/** One tool call, as recorded by {@link prompt}. */
export interface ToolExecutionRecord {
  /** Id of the call, as the model gave it. */
  id: ToolUseId;
  /** Tool name, as the model wrote it. */
  name: string;
  /** Parsed arguments, or the raw text where they are not JSON. */
  input: JsonValue;
  /** What the model was told. */
  output: JsonValue;
  /** Time the tool ran, in milliseconds; 0 if it never ran. */
  duration: number;
  /** Present and true if the call failed. */
  isError?: boolean;
}

/** Token counts of a request. */
export interface TokenUsage {
  /** Input tokens of the last model call, cached ones included. */
  inputTokens: number;
  /** Output tokens of the last model call. */
  outputTokens: number;
  /** Sum of all tokens of all model calls of the request. */
  totalTokens: number;
  /** The Session's `maxContextTokens`. */
  maxContextTokens: number;
}

/** A model the Session can use. */
export interface ModelInfo {
  /** `default` for the configured model. */
  id: string;
  /** Model name as the provider knows it. */
  name: string;
  /** Provider type. */
  provider: ProviderType;
  /** Context window in tokens. */
  maxContextTokens?: number;
}

/**
 * An event of a Session's stream. Narrow on `type`.
 *
 * Order within a turn: `turn_start`, text and thinking deltas, `tool_use` of every call in the declared order, updates
 * of the running tools and a `tool_result` of each call as it settles, `turn_end`. Calls of one turn run in parallel,
 * so results are told apart by `id`; the model is given them in the declared order. A request that succeeds ends with
 * one `usage` and one `result`. A request that fails ends with one `error` and neither. A cancelled request ends with
 * none of the three. The Session is idle by then: the next `send` is accepted.
 *
 * `turn` counts from 1 within the request. `id` is the id of the tool call and `name` the tool's name as the model
 * wrote it.
 */
export type SessionStreamEvent =
  /** A turn begins: the model is about to be called. */
  | { type: 'turn_start'; sessionId: SessionId; turn: number }
  /** A turn is over: its tool results are in the history. */
  | { type: 'turn_end'; sessionId: SessionId; turn: number }
  /** A `now` input interrupted the turn. */
  | { type: 'turn_interrupted'; sessionId: SessionId; inputId: InputId; requestId: RequestId; turn: number }
  /** A steering input was added to the conversation; `turn` is the turn that will see it. */
  | {
      type: 'input_applied';
      sessionId: SessionId;
      inputId: InputId;
      requestId: RequestId;
      priority: 'now' | 'next';
      turn: number;
    }
  /** A piece of the answer. */
  | { type: 'content'; sessionId: SessionId; delta: string }
  /** A piece of reasoning; only with {@link StreamOptions.includeThinking}. */
  | { type: 'thinking'; sessionId: SessionId; delta: string }
  /** The model called a tool. `input` is the parsed arguments, or their raw text where they are not JSON. */
  | { type: 'tool_use'; sessionId: SessionId; id: ToolUseId; name: string; input: JsonValue }
  /** A running tool reported progress; `progress` is the whole yield. */
  | { type: 'tool_progress'; sessionId: SessionId; id: ToolUseId; name: string; progress: ToolProgress }
  /** A running tool has something to show. */
  | { type: 'tool_message'; sessionId: SessionId; id: ToolUseId; name: string; content: ToolDisplayContent }
  /** A tool changes tool policy, discovery, model or prompt. */
  | { type: 'tool_runtime_patch'; sessionId: SessionId; id: ToolUseId; name: string; patch: RuntimePatch }
  /** A tool changes the runtime context. */
  | { type: 'tool_context_patch'; sessionId: SessionId; id: ToolUseId; name: string; patch: RuntimeContextPatch }
  /** A tool adds messages, which follow the turn's tool results. */
  | { type: 'tool_new_messages'; sessionId: SessionId; id: ToolUseId; name: string; messages: ModelMessage[] }
  /** A tool proposes permission rules. */
  | { type: 'tool_permission_updates'; sessionId: SessionId; id: ToolUseId; name: string; updates: PermissionUpdate[] }
  /** A call has its result. `output` is what the model is told, `display` what a user interface may show. */
  | {
      type: 'tool_result';
      sessionId: SessionId;
      id: ToolUseId;
      name: string;
      output: ToolModelContent;
      display?: ToolDisplayContent;
      isError: boolean;
    }
  /** Token counts, once, before `result`. */
  | { type: 'usage'; sessionId: SessionId; usage: TokenUsage }
  /** The request is over. `content` is the final text. */
  | { type: 'result'; sessionId: SessionId; subtype: 'success' | 'error'; content?: string; error?: string }
  /** The request failed. `code` is stable, see {@link SdkErrorCode}; `message` is for people. */
  | { type: 'error'; sessionId: SessionId; message: string; code?: SdkErrorCode };

/**
 * Defines a tool. This is the only way to author one.
 *
 * `parameters` is the single source of truth: it types `execute`, validates the model's arguments and is what the model
 * is sent, unchanged. TypeBox 1.x schemas infer the parameters; a plain JSON Schema object works too and gives
 * `JsonObject`. Validation never coerces; schema defaults are filled in.
 *
 * The JSON value `execute` resolves to is both what the model reads and the result's `data`. Throw to report failure.
 *
 * ```ts
 * const lookup = defineTool({
 *   name: 'Lookup',
 *   description: 'Look up one record by id',
 *   parameters: Type.Object({ id: Type.String() }),
 *   kind: ToolKind.ReadOnly,
 *   sideEffect: ToolSideEffect.PURE,
 *   async execute({ id }, { signal }) {
 *     return await store.get(id, { signal });
 *   },
 * });
 * ```
 *
 * @throws {TypeError} `name`, `parameters` or `execute` is missing, `sideEffect` has another value, or `parameters`
 *   hold, however deep, what JSON Schema cannot say: a TypeBox refinement or codec, which are code; a type that is no JSON,
 *   such as `Type.BigInt()`, `Type.Undefined()` or `Type.Function()`; or a keyword with such a value, for instance
 *   `Type.Literal(1n)`; or `parameters` are a Zod schema. The rest is checked when a Session takes
 *   the tool (`TOOL_DEFINITION_ERROR`).
 */
export declare function defineTool<
  TParameters extends ToolParameterSchema,
  TData extends JsonValue,
  TService extends ToolServiceName = never,
  TRuntime extends boolean = false,
>(definition: ToolDefinitionInput<TParameters, TData, TService, TRuntime>): ToolDefinition<TParameters, TData>;

/**
 * A schema {@link defineTool} accepts: TypeBox 1.x, or a plain JSON Schema object. It must describe an object. Zod
 * schemas are not accepted.
 */
export type ToolParameterSchema = TSchema & object & NotAZodSchema;

/** Keeps Zod 3 and Zod 4 schemas out, which would otherwise pass as plain objects. */
interface NotAZodSchema {
  readonly _def?: never;
  readonly _zod?: never;
}

/**
 * Type of the arguments a schema describes: `Type.Static` for a TypeBox schema, `JsonObject` for a plain JSON Schema,
 * and `unknown` where the schema's own type was forgotten, as in a list of different tools.
 *
 * TypeBox schemas are told apart by their `~` markers.
 */
export type ToolParameters<TParameters extends TSchema> = [keyof TParameters] extends [never]
  ? unknown
  : Extract<keyof TParameters, `~${string}`> extends never
    ? JsonObject
    : Static<TParameters>;

/** What {@link defineTool} takes. Required: `name`, `description`, `parameters`, `execute`. */
export interface ToolDefinitionInput<
  TParameters extends TSchema = TSchema,
  TData extends JsonValue = JsonValue,
  TService extends ToolServiceName = ToolServiceName,
  TRuntime extends boolean = boolean,
> extends ToolDeclaration<TParameters> {
  /** Session services `execute` needs; only these appear in its context. Default: none. */
  services?: readonly TService[];
  /** Gives `execute` a `context.runtime`. Default false. */
  requiresRuntime?: TRuntime;
  /**
   * Does the work.
   *
   * **Contract**
   * - Called once a call, after validation and permission, with arguments that fit `parameters`. Calls of one turn may
   *   run at the same time.
   * - Awaited by the pipeline for at most `toolTimeoutMs`. May take long without blocking other work.
   * - Resolves to a JSON value. Anything else (`undefined`, a function, a `bigint`, a cycle) is an error result.
   * - May throw or reject: the model reads the message as an `execution_error` and the request goes on.
   * - Must stop and release what it holds when `context.signal` aborts. It is then awaited for 5 seconds more; a tool
   *   that still runs makes the Session refuse new tool calls, and `close()` reject with code `SESSION_BUSY`, until it
   *   settles.
   */
  execute(params: ToolParameters<TParameters>, context: ToolExecutionContext<TService, TRuntime>): Promise<TData>;
}

/**
 * A tool as Sessions take it and {@link defineTool} makes it.
 *
 * `execute` is the runtime protocol of the package, not a second way of authoring: it skips validation, permission and
 * deadline. Drive it with {@link collectToolExecution}.
 */
export interface ToolDefinition<TParameters extends TSchema = TSchema, TData extends JsonValue = JsonValue>
  extends ToolDeclaration<TParameters> {
  /** Session services the tool needs. A Session that lacks one of them does not register the tool. */
  services?: readonly ToolServiceName[];
  /** Whether the tool's context carries `runtime`. */
  requiresRuntime?: boolean;
  /** Runs the tool directly. Yields updates and returns the result. */
  execute(params: ToolParameters<TParameters>, context: ExecutionContext): ToolExecution<TData>;
}

/** What the registry and the model are told about a tool. */
export interface ToolDeclaration<TParameters extends TSchema = TSchema> {
  /**
   * Unique name the model calls: 1 to 64 of the characters `A-Z`, `a-z`, `0-9`, `_` and `-`, which every provider takes.
   * Names that start with `mcp__` are reserved.
   */
  name: string;
  /** Further names that resolve to the tool, under the same rules. Default: none. */
  aliases?: string[];
  /** Name for people. Default: `name`. */
  displayName?: string;
  /** What the model is told. */
  description: string | ToolDescription;
  /**
   * Schema of the arguments; sent to the model unchanged and used to validate. References stay within the schema: nothing
   * is ever fetched. Limits: 4 MiB of JSON text, 127 levels, chains of 64 schemas for one value.
   */
  parameters: TParameters;
  /** Whether repeating a call is safe. Default `'non_idempotent'`: recovery never replays it. */
  sideEffect?: ToolSideEffect;
  /** What class of action a call is; take it from the {@link ToolKind} constants. Default `ToolKind.Execute`. */
  kind?: ToolKind;
  /** Group of the tool. Default: none. */
  group?: BuiltinToolGroup;
  /** When the tool is declared to the model. Default: in every request. */
  exposure?: ToolExposureConfig;
}

/**
 * A description in parts. The model reads `short`, a blank line and `long`, then "Usage Notes:" and "Important:" lists.
 */
export interface ToolDescription {
  /** One sentence. */
  short: string;
  /** More about it. */
  long?: string;
  /** How to use it well. */
  usageNotes?: string[];
  /** Example calls. They are kept in the definition and not sent to the model. */
  examples?: { description: string; params: JsonObject }[];
  /** What must not be overlooked. */
  important?: string[];
}

/** When a tool is declared to the model. */
export interface ToolExposureConfig {
  /** Default `'eager'`. */
  mode?: ToolExposureMode;
  /** Declared in every request, whatever `mode` says. Default false. */
  alwaysLoad?: boolean;
  /** Words that help to find the tool. Default empty. */
  discoveryHint?: string;
}

/**
 * - `'eager'`: declared in every request.
 * - `'deferred'`: listed in a system message (the first 12, while `DiscoverTools` can be called), and declared once it was
 *   discovered.
 * - `'discoverable-only'`: declared once it was discovered, not listed before.
 */
export type ToolExposureMode = 'eager' | 'deferred' | 'discoverable-only';

/** Groups of the built-in tools. */
export type BuiltinToolGroup = 'filesystem' | 'shell' | 'web' | 'task' | 'memory' | 'system' | 'mcp-resources';

/** Name of a Session service a tool can declare. */
export type ToolServiceName = keyof ToolServiceMap;

/**
 * The services a tool can declare in `services`, by the name they have in its context.
 *
 * A Session of this version provides `discoverableCatalog`, and `memoryManager` if it was given one. A tool that declares
 * another service is valid and is not registered.
 */
export interface ToolServiceMap {
  /** The agents that work can be delegated to. */
  subagentRegistry: {
    /** Names of all agents. */
    getAllNames(): string[];
  };
  /** The Session's memory. */
  memoryManager: MemoryManager;
  /** The connected MCP servers. */
  mcpRegistry: unknown;
  /** The discovered Skills. */
  skillRegistry: unknown;
  /** The agents that run in the background. */
  backgroundAgentManager: unknown;
  /** The tools that can be discovered. */
  discoverableCatalog: DiscoverableCatalog;
}

/** The tools that are registered but not declared to the model in the turn of a call. */
export interface DiscoverableCatalog {
  /**
   * The tools in the order they would be declared in: those that only their exposure mode hides, and no policy and no
   * mode. The same frozen list for the whole call.
   *
   * @throws {SdkError} `TOOL_EXECUTION_ERROR`: it is called for the first time after the call has ended.
   */
  list(): readonly DiscoverableTool[];
}

/** A tool that can be discovered; its name in `toolDiscovery` of a {@link RuntimePatch} declares it. */
export interface DiscoverableTool {
  /** Name of the tool. */
  readonly name: string;
  /** Its other names. */
  readonly aliases: readonly string[];
  /** Name for people; `name` where there is no other. */
  readonly displayName: string;
  /** What the model is told of it. */
  readonly description: string;
  /** Words that help to find it; may be empty. */
  readonly hint: string;
}

/**
 * What every tool call knows about the Session it runs in. Frozen. In a Session all fields but the optional handlers
 * are present; a tool that is executed directly sees what its caller passes.
 */
export interface ExecutionContext {
  /** The Session. */
  readonly sessionId?: SessionId;
  /** The assistant message that made the call. */
  readonly messageId?: MessageId;
  /** The runtime context of the request: roots, working directory, environment. */
  readonly contextSnapshot?: ContextSnapshot;
  /** Aborts when the request is cancelled, the Session closes or the deadline passes. */
  readonly signal?: AbortSignal;
  /** The Session's confirmation handler, if it has one. */
  readonly confirmationHandler?: ConfirmationHandler;
  /** The mode the call was permitted in. */
  readonly permissionMode?: PermissionMode;
  /** Settings of the Session; without credentials. */
  readonly bladeConfig?: BladeConfig;
}

/**
 * The context of an authored tool: {@link ExecutionContext}, the declared services, and `runtime` if it was requested.
 */
export type ToolExecutionContext<
  TService extends ToolServiceName = never,
  TRuntime extends boolean = false,
> = ExecutionContext &
  Readonly<Pick<ToolServiceMap, TService>> &
  (TRuntime extends true ? { readonly runtime: RuntimeAccess } : unknown);

/**
 * Execution lease and fencing of the Session, for tools with effects that must not happen twice. Without a lease the
 * functions check nothing.
 */
export interface RuntimeAccess {
  /** Token of the lease; grows with every new owner. Absent without a lease. */
  readonly executionFence?: FencingToken;
  /** Rejects if the Session has lost its lease. */
  assertExecutionLease(): Promise<void>;
  /**
   * Runs an operation under the lease: checks it before and after.
   *
   * **Contract** for `operation`
   * - Awaited by this call, which settles as it does.
   * - May throw or reject: this call rejects with the same error.
   */
  runWithExecutionLease<TResult>(operation: () => Promise<TResult>): Promise<TResult>;
}

/** Settings of the Session a tool runs in. Never holds keys or headers. */
export interface BladeConfig {
  /** The configured models. */
  readonly models: readonly ModelConfig[];
  /** `id` of the model in use. */
  readonly currentModelId?: string;
  /** Sampling temperature. */
  readonly temperature?: number;
  /** Turn limit of a request. */
  readonly maxTurns?: number;
  /** Deadline of one tool invocation in milliseconds. */
  readonly toolTimeoutMs?: number;
}

/** A configured model. */
export interface ModelConfig {
  /** Logical id; `default` for the Session's own. */
  readonly id: string;
  /** Provider type. */
  readonly provider: ProviderType;
  /** Model name as the provider knows it. */
  readonly model: string;
  /** Context window in tokens. */
  readonly maxContextTokens?: number;
  /** Limit of output tokens. */
  readonly maxOutputTokens?: number;
}

/** What a call does, in dimensions of their own: none follows from another. */
export interface ToolBehavior {
  /** What class of action it is. */
  kind: ToolKind;
  /** Whether repeating it is safe. */
  sideEffect: ToolSideEffect;
  /** Whether it only looks: runs without a question, and in plan mode. */
  isReadOnly: boolean;
  /** Whether it may use a file together with other calls that read it. */
  isConcurrencySafe: boolean;
  /** Whether it is asked about in every mode. */
  isDestructive: boolean;
  /** What a `now` input does to it. */
  interruptBehavior: 'block' | 'cancel';
}

/** A running tool: yields updates, returns the result. */
export type ToolExecution<TData extends JsonValue = JsonValue> = AsyncGenerator<ToolYield, ToolResult<TData>, void>;

/** What a running tool reports before its result. Each yield becomes a stream event. */
export type ToolYield = ToolProgress | ToolMessage | ToolEffectYield;

/** How far a tool has come. */
export interface ToolProgress {
  kind: 'progress';
  /** A line for people. */
  message?: string;
  /** Anything more. */
  data?: JsonValue;
  /** Units done. */
  completed?: number;
  /** Units in all. */
  total?: number;
  /** Where the tool could go on from. */
  resumeToken?: string;
}

/** Something to show. */
export interface ToolMessage {
  kind: 'message';
  /** What to show. */
  content: ToolDisplayContent;
}

/** An effect on the Session. */
export interface ToolEffectYield {
  kind: 'effect';
  /** The effect. */
  effect: ToolEffect;
}

/**
 * An effect of a tool on its Session.
 *
 * Each effect is published as an event when it is yielded. It is applied when the calls of the turn have their results,
 * in the order of the calls, and only if its call ended in success. A malformed effect fails the call that yields it
 * (`INVALID_TOOL_YIELD`, with the name of the field), and none of that call's effects is applied. So does one more than a
 * call may yield: 1,000 effects of 10 MiB of JSON together. What runtime patches add for the request, and for the Session,
 * is kept up to 1,000 texts of 1 MiB for the prompt, as many for messages, and 1 MiB of environment variables.
 *
 * Tools of trust level `remote` add messages (none with role `system`) and context `metadata`; what else they yield is
 * published and not applied.
 */
export type ToolEffect =
  /** Tool policy, discovery, prompt, environment and hooks. Only the first one of a call counts. */
  | { type: 'runtimePatch'; patch: RuntimePatch }
  /** The runtime context of the calls that follow. */
  | { type: 'contextPatch'; patch: RuntimeContextPatch }
  /**
   * Messages that follow the turn's tool results. Those with role `tool` or with `tool_calls` are left out: half of an
   * exchange would spoil every later request. System messages get the provenance `tool_injection`.
   */
  | { type: 'newMessages'; messages: ModelMessage[] }
  /** Permission rules. */
  | { type: 'permissionUpdates'; updates: PermissionUpdate[] };

/** The end of a tool call. Narrow on `status`. */
export type ToolResult<TData extends JsonValue = JsonValue> =
  | {
      status: 'success';
      /** What the model is told. */
      model: ToolModelContent;
      /** What a user interface may show; not meant for parsing. */
      display?: ToolDisplayContent;
      /** Structured data for the caller; not sent to the model. */
      data?: TData;
      /** Facts about the result. */
      metadata?: ToolResultMetadata;
    }
  | {
      status: 'error';
      /** What the model is told. */
      model: ToolModelContent;
      /** What a user interface may show; not meant for parsing. */
      display?: ToolDisplayContent;
      /** What went wrong. */
      error: ToolError;
      /** Facts about the result. */
      metadata?: ToolResultMetadata;
    };

/** Content written back to the model: a string as it is, anything else as JSON text. */
export type ToolModelContent = JsonValue;

/** Content for a user interface. */
export interface ToolDisplayContent {
  /** One line. */
  summary: string;
  /** Anything more. */
  detail?: JsonValue;
}

/** What went wrong in a tool call. */
export interface ToolError {
  /** For people and logs. */
  message: string;
  /** Class of the failure. */
  type: ToolErrorType;
  /** Stable code, where there is one. */
  code?: string;
  /** Facts, for instance the `issues` of a validation error: `{field, message, value}[]`. */
  details?: unknown;
}

/**
 * Facts about a result. Tools may add their own keys; the first three are set by the SDK, whatever a tool says. A result
 * that was too long has `resultSizeLimit` and `modelContentOriginalLength`, and either `resultExternalized` with
 * `resultArtifactPath` or `resultTruncated`.
 */
export interface ToolResultMetadata {
  /** Id of this run of the call; never the same twice. */
  executionId?: string;
  /** Main name of the tool. */
  toolName?: string;
  /** When the call ended, in milliseconds since the Unix epoch. */
  timestamp?: number;
  /** Ends the request after the turn. */
  shouldExitLoop?: boolean;
  [key: string]: JsonValue | undefined;
}

/** Limits which tools the model sees. A missing or empty list limits nothing. */
export interface ToolSourcePolicy {
  /** Kinds of source that are shown. */
  allowedSources?: readonly ToolSourceKind[];
  /** Trust levels that are shown. */
  allowedTrustLevels?: readonly ToolTrustLevel[];
}

/** Where a tool comes from: this package, the application, an MCP server, or the Session itself. */
export type ToolSourceKind = 'builtin' | 'custom' | 'mcp' | 'session';

/** How far a source is trusted: built-in tools, the application's own tools, remote tools. */
export type ToolTrustLevel = 'trusted' | 'workspace' | 'remote';

/**
 * Drains a tool execution and gives its result. The generator is closed if anything fails, and the first failure is
 * kept.
 *
 * **Contract** for `onYield`
 * - Awaited before the tool goes on.
 * - May throw or reject: the execution is closed and this call rejects with the same error.
 * - Must settle: while it does not, the execution does not go on.
 */
export declare function collectToolExecution<TData extends JsonValue = JsonValue>(
  execution: ToolExecution<TData>,
  onYield?: (event: ToolYield) => void | Promise<void>,
): Promise<ToolResult<TData>>;

/** A tool execution that yields nothing and returns `result`. */
export declare function completeToolExecution<TData extends JsonValue = JsonValue>(
  result: ToolResult<TData>,
): ToolExecution<TData>;

/**
 * Decides one tool call before the mode does.
 *
 * **Contract**
 * - Awaited by the pipeline before the tool starts; calls of one turn may ask in parallel.
 * - `allow` runs the call, unless an `ask` rule of the Session wants it confirmed; `deny` gives the model a
 *   `permission_denied` result; `ask` needs confirmation.
 * - Not asked about what plan mode, path safety or a `deny` rule refuses.
 * - May throw or reject: the call is denied and the message reaches the model.
 * - May wait as long as it likes. When `request.signal` aborts, the request is cancelled at once; until this settles,
 *   new tool calls are refused and `close()` rejects with code `SESSION_BUSY`. A late rejection is ignored.
 */
export type PermissionHandler = (request: PermissionHandlerRequest) => Promise<PermissionResult>;

/** A tool call, as a {@link PermissionHandler} judges it. */
export interface PermissionHandlerRequest {
  /** Name of the tool, aliases resolved. */
  toolName: string;
  /** Validated arguments. A copy: to change them, answer with `updatedInput`. */
  input: JsonObject;
  /** Aborts when the request is cancelled. */
  signal: AbortSignal;
  /** Mode of the Session. */
  permissionMode?: PermissionMode;
  /** Whether the call was approved for the rest of the Session, or a rule that was added allows it. */
  sessionApproved?: boolean;
  /**
   * Paths the call touches. Of a custom tool: the values of its arguments `path`, `file`, `directory`, `*_path`, `*Path`
   * and of the arrays `paths` and `files`, at any depth, as given. `toolMeta.paths` says where they lead.
   */
  affectedPaths: string[];
  /** Kind of the call, after parameter-dependent narrowing. */
  toolKind: ToolKind;
  /** What the call does. */
  toolMeta: PermissionToolMeta;
}

/** What a call does. The fields are independent of each other. */
export interface PermissionToolMeta {
  /** Whether repeating the call is safe. */
  sideEffect: ToolSideEffect;
  /** Whether it only reads. */
  isReadOnly: boolean;
  /** Whether it may run beside other readers of the same file. */
  isConcurrencySafe: boolean;
  /** Whether it always needs explicit confirmation. */
  isDestructive: boolean;
  /** What rules match: the tool's name, or `Name:content`. */
  signature?: string;
  /**
   * Signatures of what the call consists of, where it is more than one thing, as in `Bash:a && b`. Rules allow a call
   * only if they allow each part, and deny it if they deny one. `Name:` with nothing behind it is a part that was not
   * understood.
   */
  parts?: string[];
  /** Other names of the tool. Rules that deny or ask hold under these too. */
  aliases?: string[];
  /**
   * Where `affectedPaths` lead, in the same order. Rules and path safety judge by these; a request that was made by hand
   * may leave them out, then `affectedPaths` are taken as they are.
   */
  paths?: PermissionPath[];
  /** A sentence about the call. */
  description?: string;
}

/** A path of a call, by every name rules may know it under. Separators are `/` on every system. */
export interface PermissionPath {
  /** The canonical path: absolute, links followed, also where the file does not exist yet. */
  resolved: string;
  /** Other names of the same place: relative to the working directory, and below roots that are links themselves. */
  also?: string[];
  /** How the call spelled it, where that is none of these. Rules that deny or ask look at it too. */
  given?: string[];
}

/** Decision about one tool call. Narrow on `behavior`. */
export type PermissionResult =
  | {
      behavior: 'allow';
      /** Fields to merge over the arguments; validated again. Affected paths may not change. */
      updatedInput?: JsonObject;
      /** Effects of the call, as if its tool had yielded them first. Malformed ones deny the call. */
      effects?: ToolEffect[];
      /**
       * Rules to add to the Session or to remove from it, for later calls; see {@link PermissionUpdate}. Malformed ones
       * deny the call, and none of them is applied.
       */
      updatedPermissions?: PermissionUpdate[];
    }
  | {
      behavior: 'deny';
      /** Why; the model reads it. */
      message: string;
      /** Ends the request after the turn. Default false. */
      interrupt?: boolean;
    }
  | {
      behavior: 'ask';
      /** Why; shown to whoever confirms. */
      message?: string;
    };

/**
 * A change of the rules a Session has learned, enforced for later calls.
 *
 * - `addRules` with `deny`: refused in every mode, before anybody is asked.
 * - `addRules` with `allow`: counts as an approval. It lifts neither rules that deny, nor plan mode, nor path safety.
 * - `removeRules`: takes back equal rules of either kind, and approvals of that signature; without content, all
 *   approvals of the tool.
 *
 * At most 10,000 rules that allow are remembered. A fork starts with the denials of its Session and nothing else.
 */
export type PermissionUpdate =
  | { type: 'addRules'; rules: PermissionRuleValue[]; behavior: 'allow' | 'deny' }
  | { type: 'removeRules'; rules: PermissionRuleValue[] };

/** A permission rule in parts. */
export interface PermissionRuleValue {
  /** Name of the tool; a trailing `*` makes it the beginning of names. */
  toolName: string;
  /** What stands between the parentheses of `Tool(content)`; omitted: all calls of the tool. */
  ruleContent?: string;
}

/**
 * Rules by list; docs/permissions.md has the whole syntax.
 *
 * | Rule | Covers |
 * |---|---|
 * | `*` | every call |
 * | `Tool` | in `deny` and `ask` every call of the tool; in `allow` exactly this signature (`Tool(*)` allows every call) |
 * | `Tool:content`, `Tool(content)` | exactly this content; for tools that touch files, a path pattern |
 * | `Tool:prefix*`, `Tool(prefix*)` | contents that begin so |
 * | `Tool(command:*)` | the command, alone or with more words: `Bash(npm test:*)` covers `npm test -- x`, not `npm testing` |
 *
 * In path patterns `*` stays within a segment unless it ends the pattern, `**` crosses segments. `src/**` and `./x` are
 * relative to the working directory, `.env` and `**\/x` match anywhere.
 */
export interface PermissionsConfig {
  /** Calls that run. */
  allow?: string[];
  /** Calls that need confirmation. */
  ask?: string[];
  /** Calls that are refused; strongest. */
  deny?: string[];
}

/**
 * A handler that decides by mode, which is what a Session does by itself. In order: mode `plan` denies what is not
 * read-only; a session approval allows; destructive calls ask; `yolo` allows; read-only calls are allowed; `autoEdit`
 * allows writing; anything else asks.
 *
 * The request's `permissionMode` is stronger than `defaultMode`, which defaults to `'default'`.
 */
export declare function createModePermissionHandler(defaultMode?: PermissionMode): PermissionHandler;

/**
 * A handler that decides by rules: `deny` before `allow` before `ask`; a call no rule matches asks. Throws a
 * {@link ConfigError} for a rule that means nothing.
 */
export declare function createRuleBasedPermissionHandler(config: PermissionsConfig): PermissionHandler;

/**
 * A handler that protects paths, as given and where they lead: denies `..` segments, system directories and highly
 * sensitive files (private keys, credentials); asks where an explicit allow rule names such a file; allows everything
 * else.
 */
export declare function createPathSafetyPermissionHandler(options?: PathSafetyPermissionOptions): PermissionHandler;

/** Options of {@link createPathSafetyPermissionHandler}. */
export interface PathSafetyPermissionOptions {
  /** Rules that name sensitive files on purpose; same syntax as {@link PermissionsConfig}. Default: none. */
  explicitAllowRules?: readonly string[];
}

/**
 * Combines handlers in order; `undefined` entries are skipped. A deny ends it at once. An ask ends it too
 * (`'first-wins'`, the default) or lets a later handler deny (`'deny-wins'`). `updatedInput` of an allow is seen by the
 * handlers after it; effects and updates add up.
 */
export declare function createCompositePermissionHandler(
  handlers: readonly (PermissionHandler | undefined)[],
  strategy?: 'first-wins' | 'deny-wins',
): PermissionHandler;

/** Asks a human, or a program in their place, whether a call may run. */
export interface ConfirmationHandler {
  /**
   * Asks one question.
   *
   * **Contract**
   * - Awaited by the pipeline before the call goes on; may be called again before an earlier question is answered.
   * - May throw or reject: the call is denied and the message reaches the model.
   * - May wait as long as it likes. When `details.abortSignal` aborts, the request is cancelled at once; until this
   *   settles, new tool calls are refused and `close()` rejects with code `SESSION_BUSY`. A late rejection is ignored.
   * - `details` is a copy: changing it changes nothing.
   */
  requestConfirmation(details: ConfirmationDetails): Promise<ConfirmationResponse>;
}

/** The question of a {@link ConfirmationHandler}. Texts are for people, not for parsing. */
export interface ConfirmationDetails {
  /** What is asked. Absent means `'permission'`. */
  type?: 'permission' | 'enterPlanMode' | 'exitPlanMode' | 'maxTurnsExceeded' | 'askUserQuestion';
  /** Id of the question. */
  permissionRequestId?: PermissionRequestId;
  /** Aborts when the request is cancelled: take the question back. */
  abortSignal?: AbortSignal;
  /** Kind of the call. */
  kind?: ToolKind;
  /** Name of the tool. */
  toolName?: string;
  /** Final arguments of the call. */
  args?: JsonObject;
  /** A heading. */
  title?: string;
  /** The question. */
  message: string;
  /** More about it. */
  details?: string;
  /** What could go wrong. */
  risks?: string[];
  /** Files the call touches. */
  affectedFiles?: string[];
  /** The plan, for `'exitPlanMode'`. */
  planContent?: string;
  /** The questions, for `'askUserQuestion'`. */
  questions?: {
    question: string;
    header: string;
    multiSelect: boolean;
    options: { label: string; description: string }[];
  }[];
}

/** The answer of a {@link ConfirmationHandler}. */
export interface ConfirmationResponse {
  /** Whether the call may run. */
  approved: boolean;
  /** Why not; it is the result of the call, and of the request, which ends after this turn. */
  reason?: string;
  /**
   * `'session'` remembers the approval for calls with the same signature; where the signature is the tool's name alone,
   * as with custom tools, for calls with the same arguments. Default `'once'`.
   */
  scope?: 'once' | 'session';
  /** Mode to go on in, for plan questions. */
  targetMode?: PermissionMode;
  /** Free text from the user. */
  feedback?: string;
  /** Answers by question, for `'askUserQuestion'`. */
  answers?: Record<string, string | string[]>;
}

/**
 * Observes and blocks the durable boundaries of tool calls: what a callback is told is about to happen, and does not
 * happen unless the callback resolves. For applications that store what their agents do.
 *
 * Order of a call: `onToolScheduled`, the `tool_use` event, (`onPermissionRequested`, the question,
 * `onPermissionResolved`), `onExecutionStarted`, the tool, `onToolSettled`, the `tool_result` event.
 *
 * Calls whose arguments are no JSON object are not told of. Without an observer calls run as ever.
 *
 * **Contract** for all callbacks
 * - Awaited. May take as long as they like; a cancelled request waits 5 seconds for them. One that is still pending
 *   then makes the Session refuse new tool calls, and `close()` reject with code `SESSION_BUSY`, until it settles.
 * - May throw or reject: the step does not happen. `onToolScheduled` and `onToolSettled` end the request with an
 *   `error` event of code `TOOL_LIFECYCLE_FAILED`; the others make the call an error result with that code.
 * - What they are given are copies.
 */
export interface ToolExecutionLifecycle {
  /** Before a call is published. Resolves to the observer of this call, if it has one. */
  onToolScheduled?(event: ToolScheduledLifecycle): Promise<ToolInvocationLifecycle | undefined>;
  /** Before a result is published. */
  onToolSettled?(event: ToolSettledLifecycle): Promise<void>;
}

/** A call that is about to be published. */
export interface ToolScheduledLifecycle {
  /** The call. */
  toolCallId: ToolUseId;
  /** The name the model called. */
  toolName: string;
  /** The model request that made the call. Absent in this version. */
  modelAttemptId?: ModelAttemptId;
  /** Arguments as the model sent them. */
  modelInput: JsonObject;
  /** Arguments the pipeline starts from. */
  input: JsonObject;
  /** What repeating the call may do, as far as its arguments tell. `'non_idempotent'` for an unknown tool. */
  sideEffect: ToolSideEffect;
  /** What a `now` input does to the call. */
  interruptBehavior: 'block' | 'cancel';
}

/** A result that is about to be published. */
export interface ToolSettledLifecycle {
  /** The call. */
  toolCallId: ToolUseId;
  /** The name the model called. */
  toolName: string;
  /** How it ended. */
  result: ToolResult;
}

/** The observer of one call; see {@link ToolExecutionLifecycle} for its contract. */
export interface ToolInvocationLifecycle {
  /** Before a person is asked. Resolves to the id of the question: a non-empty string. */
  onPermissionRequested?(details: ConfirmationDetails, input: JsonObject): Promise<PermissionRequestId>;
  /** Before the answer counts; also for a question that was cancelled. Only told of questions that were given an id. */
  onPermissionResolved?(resolution: ToolPermissionResolution): Promise<void>;
  /** Before the tool runs. */
  onExecutionStarted?(event: ToolExecutionStartedLifecycle): Promise<void>;
}

/** What became of a question. */
export interface ToolPermissionResolution {
  /** The id `onPermissionRequested` gave. */
  permissionRequestId: PermissionRequestId;
  /** `'cancel'`: the request ended before there was an answer. */
  decision: 'allow' | 'deny' | 'cancel';
  /** The reason that was given. */
  reason?: string;
  /** How long an approval lasts. */
  scope?: 'once' | 'session';
}

/** A tool that is about to run, or middleware that has answered in its place. */
export interface ToolExecutionStartedLifecycle {
  /** Final arguments. */
  input: JsonObject;
  /** Resolved for them. */
  sideEffect: ToolSideEffect;
}

/** A message in the shape models exchange. */
export interface ModelMessage {
  /** Id of the message. */
  id?: MessageId;
  /** Who speaks. */
  role: MessageRole;
  /** What is said: text, or parts. */
  content: string | ModelContent[];
  /** Reasoning of an assistant message. */
  reasoningContent?: string;
  /** Role `tool`: the call this answers. */
  tool_call_id?: string;
  /** Role `tool`: name of the tool. */
  name?: string;
  /** Role `assistant`: the calls it made. */
  tool_calls?: ModelToolCall[];
  /** The model that wrote it, where known. */
  modelIdentity?: ModelIdentity;
  /** Options for the provider about this message, keyed by provider type. */
  providerOptions?: ModelProviderOptions;
}

/** A message as a Session keeps it. */
export interface ConversationMessage extends ModelMessage {
  /** Present if the message did not come from the user or the model. */
  provenance?: { source: ConversationMessageSource };
  /** The request and input the message belongs to, where known. */
  correlation?: { inputId: InputId; requestId: RequestId };
  /** Model and token counts of the call that wrote it, where known. */
  telemetry?: { model?: string; usage?: { inputTokens: number; outputTokens: number } };
  /** Data of the application. */
  extensions?: JsonObject;
}

/** A part of a message. */
export type ModelContent = ModelTextContent | ModelImageContent;

/** Text, with options that go to the provider for this part alone. */
export interface ModelTextContent {
  type: 'text';
  /** The text. */
  text: string;
  /** Options keyed by provider type. */
  providerOptions?: ModelProviderOptions;
}

/** An image. */
export interface ModelImageContent {
  type: 'image_url';
  /** `http(s):` URL or base64 `data:` URL. */
  image_url: { url: string };
}

/** A tool call as the model made it. */
export interface ModelToolCall {
  /** Unique within the conversation. */
  id: string;
  type: 'function';
  /** `arguments` is JSON text as received; it may be malformed. */
  function: { name: string; arguments: string };
}

/** A tool as the model is told of it. */
export interface ModelToolDefinition {
  /** Tool name. */
  name: string;
  /** Text for the model. */
  description: string;
  /** JSON Schema of the arguments. */
  parameters: JsonObject;
  /** The provider's strict flag, where set. */
  strict?: boolean;
}

/** Token counts of one model call. A missing optional count is not known. */
export interface ModelUsage {
  /** Tokens of the request, cached ones included. */
  promptTokens: number;
  /** Tokens of the answer. */
  completionTokens: number;
  /** All tokens, as the provider counts them. */
  totalTokens: number;
  /** Tokens of the answer that are reasoning. */
  reasoningTokens?: number;
  /** Tokens of the request that were written into the provider's cache. */
  cacheCreationInputTokens?: number;
  /** Tokens of the request that were read from the provider's cache. */
  cacheReadInputTokens?: number;
  /** Tokens of the request that the provider's cache did not hold. */
  cacheMissInputTokens?: number;
  /** Tokens of the request that are paid in full. */
  billableInputTokens?: number;
}

/** A whole answer of a model. */
export interface ModelResponse {
  /** The text; empty if there is none. */
  content: string;
  /** The reasoning, if there is any. */
  reasoningContent?: string;
  /** The calls the model made. */
  toolCalls?: ModelToolCall[];
  /** Why it stopped: `stop`, `tool_calls`, `length`, `content_filter`, `refusal`, or the provider's own word. */
  finishReason?: string;
  /** Token counts. */
  usage?: ModelUsage;
}

/** A piece of an answer. Every field may be absent. */
export interface ModelStreamChunk {
  /** A piece of the text. */
  content?: string;
  /** A piece of the reasoning. */
  reasoningContent?: string;
  /** Tool calls, whole or in pieces. They count when the answer is complete. */
  toolCalls?: ModelStreamToolCall[];
  /** Why the model stopped; see {@link ModelResponse.finishReason}. The last one counts. */
  finishReason?: string;
  /** Token counts; the last ones count. */
  usage?: ModelUsage;
}

/** A tool call in a stream: whole, or a piece of one. */
export type ModelStreamToolCall = ModelToolCall | ModelToolCallDelta;

/**
 * A piece of a tool call. Pieces of one `index` belong together: the first one names the function, `arguments` are
 * joined. A call without an `id` gets one.
 */
export interface ModelToolCallDelta {
  /** Place of the call in the answer, from 0. */
  index: number;
  /** Id of the call. */
  id?: string;
  type?: 'function';
  /** What the piece adds. */
  function?: { name?: string; arguments?: string };
}

/** What a model is asked for. */
export type QuerySource =
  | 'main_thread'
  | 'agent'
  | 'compact'
  | 'side_question'
  | 'hook_agent'
  | 'hook_prompt'
  | 'verification_agent'
  | 'summary'
  | 'suggestion'
  | 'classifier';

/** Options of {@link ModelService.sideQuery}. */
export interface ModelSideQueryOptions {
  /** What is asked. */
  querySource?: QuerySource;
  /** Limit of tokens of the answer. Default: the service's. */
  maxOutputTokens?: number;
  /** Sampling temperature. Default: the service's. */
  temperature?: number;
}

/** When a {@link ModelService} tries again. */
export interface ModelRetryConfig {
  /** Further attempts after the first. */
  maxRetries?: number;
  /** Wait before the first retry in milliseconds. */
  initialDelayMs?: number;
  /** Longest wait that growing leads to, in milliseconds. */
  maxDelayMs?: number;
  /** Factor from one wait to the next. */
  backoffMultiplier?: number;
}

/** An attempt of a {@link ModelService} failed and another one follows. */
export interface ModelRetryEvent {
  type: 'retry';
  /** Number of the retry, from 1. */
  attempt: number;
  /** How many there may be. */
  maxRetries: number;
  /** Wait before it, in milliseconds. */
  delayMs: number;
  /** Why the attempt before failed, for people. */
  error: string;
  /** HTTP status of that failure, if it had one. */
  status?: number;
}

/** Settings of a {@link ModelService}. Holds the key: never log it. */
export interface ModelServiceConfig {
  /** Adapter type. */
  provider: ProviderType;
  /** Logical id of the connection. */
  providerId: string;
  /** Model name as the provider knows it. */
  model: string;
  /** Sampling temperature. */
  temperature: number;
  /** Context window in tokens. */
  maxContextTokens: number;
  /** Limit of tokens of an answer. */
  maxOutputTokens?: number;
  /** Limit of a whole call in milliseconds. */
  requestTimeoutMs: number;
  /** Longest silence of a stream in milliseconds. */
  streamIdleTimeoutMs: number;
  /** Options keyed by provider type. */
  providerOptions?: ModelProviderOptions;
  /** Key; may be empty. */
  apiKey: string;
  /** Base URL. Default: the provider's own. */
  baseUrl?: string;
  /** Headers of every request. */
  customHeaders?: Record<string, string>;
  /** API version. */
  apiVersion?: string;
  /** Whether the model can reason. */
  supportsThinking?: boolean;
  /** Structured output of every call. */
  outputFormat?: OutputFormat;
  /** When it tries again. */
  retry?: ModelRetryConfig;
}

/**
 * A model as an object: what {@link wrapModelService} takes and gives.
 *
 * **Contract** for all operations
 * - `messages`, `tools` and options belong to the caller; an implementation does not change them.
 * - May throw or reject; the caller sees the same error.
 * - Ends with the reason of `signal` when that aborts.
 */
export interface ModelService {
  /** One answer, whole. */
  chat(
    messages: readonly ModelMessage[],
    tools?: readonly ModelToolDefinition[],
    signal?: AbortSignal,
  ): Promise<ModelResponse>;
  /** A question beside the conversation: no tools, limits of its own. */
  sideQuery(
    messages: readonly ModelMessage[],
    signal?: AbortSignal,
    options?: ModelSideQueryOptions,
  ): Promise<ModelResponse>;
  /** One answer in pieces. Nothing happens before the first `next()`; leaving it early ends the call. */
  streamChat(
    messages: readonly ModelMessage[],
    tools?: readonly ModelToolDefinition[],
    signal?: AbortSignal,
  ): AsyncGenerator<ModelStreamChunk, void, void>;
  /** Like `chat`, and yields each retry. */
  chatWithRetryEvents?(
    messages: readonly ModelMessage[],
    tools?: readonly ModelToolDefinition[],
    signal?: AbortSignal,
  ): AsyncGenerator<ModelRetryEvent, ModelResponse, void>;
  /** Its settings. */
  getConfig(): ModelServiceConfig;
  /** Changes settings of later calls. */
  updateConfig(change: Partial<ModelServiceConfig>): void;
}

/** Which model: logical provider id, adapter type, model name. */
export interface ModelIdentity {
  /** Logical id of the provider connection. */
  provider: string;
  /** Adapter type. */
  api: ProviderType;
  /** Model name. */
  model: string;
}

/** Options passed through to a provider, keyed by provider type: `{ openai: { reasoningEffort: 'low' } }`. */
export type ModelProviderOptions = { [provider: string]: JsonObject };

/** The same for a single message or part of one. */
export type ModelMessageProviderOptions = ModelProviderOptions;

/** How to reach a model. */
export interface ProviderConnectionConfig {
  /** Logical id of the connection, trimmed. Default: `type`. */
  id?: string;
  /** Adapter that speaks the provider's protocol. */
  type: ProviderType;
  /** Key. Default empty. Never logged and never put in an error or an event. */
  apiKey?: string;
  /** Base URL of the API, version segment included. Default: the provider's own. */
  baseUrl?: string;
  /** Headers of every request, over the adapter's own. Default: none. */
  headers?: Record<string, string>;
  /** Type `openai` only: sent as `OpenAI-Organization`. */
  organization?: string;
  /** API version, for adapters that know one. */
  apiVersion?: string;
  /** Type `openai` only: sent as `OpenAI-Project`. */
  projectId?: string;
  /**
   * Limit of the wait for the head of a response in milliseconds, 1 to 2147483647; exceeding it gives
   * `MODEL_REQUEST_TIMEOUT`. Default 600000.
   */
  requestTimeoutMs?: number;
  /**
   * Longest silence of a model stream, the wait for its first piece included, in milliseconds, 1 to 2147483647;
   * exceeding it gives `MODEL_STREAM_IDLE_TIMEOUT`. Default 300000.
   */
  streamIdleTimeoutMs?: number;
  /** When a failed model call is tried again. */
  retry?: ProviderRetryOptions;
}

/**
 * When a failed model call is tried again: after HTTP 408, 409, 429, 500, 502, 503, 504 and 529, and after lost
 * connections, as long as nothing of the answer was delivered. A wait grows with every retry, is varied by a fifth, and
 * is never shorter than the provider's `Retry-After`.
 */
export interface ProviderRetryOptions {
  /** Further attempts after the first, 0 to 100. Default 3. */
  maxRetries?: number;
  /** Wait before the first retry in milliseconds. Default 1000. */
  initialDelayMs?: number;
  /** Longest wait that growing leads to, in milliseconds. Default 30000. */
  maxDelayMs?: number;
  /** Factor from one wait to the next, 1 to 100. Default 2. */
  backoffMultiplier?: number;
  /** Longest wait a provider may ask for in milliseconds; a longer one fails the call at once. Default 600000. */
  maxRetryAfterMs?: number;
}

/** The provider types the package knows by name. */
export declare const PROVIDER_TYPES: readonly [
  'openai',
  'anthropic',
  'azure-openai',
  'gemini',
  'deepseek',
  'openai-compatible',
];

/** A provider type the package knows by name. */
export type BuiltinProviderType = (typeof PROVIDER_TYPES)[number];

/**
 * A provider type. This version has adapters for `'openai'`, `'openai-compatible'` and `'scripted'` (made by
 * `scriptedProvider` of `@blade-ai/agent-sdk/testing`); any other fails with `PROVIDER_ADAPTER_NOT_FOUND`.
 */
export type ProviderType = BuiltinProviderType | 'scripted' | (string & {});

/** Whether a value is one of {@link PROVIDER_TYPES}. */
export declare function isBuiltinProviderType(value: unknown): value is BuiltinProviderType;

/** Sources of messages that neither the user nor the model wrote. */
export declare const CONVERSATION_MESSAGE_SOURCES: readonly ['catalog', 'tool_injection', 'compaction_summary'];

/** Source of a message that neither the user nor the model wrote: list of tools, tool effect, summary. */
export type ConversationMessageSource = (typeof CONVERSATION_MESSAGE_SOURCES)[number];

/** Whether a value is one of {@link CONVERSATION_MESSAGE_SOURCES}. */
export declare function isConversationMessageSource(value: unknown): value is ConversationMessageSource;

/**
 * Makes the model answer in JSON of a schema. Sent to the provider with every call of the request; the final text is
 * the JSON.
 */
export interface OutputFormat {
  type: 'json_schema';
  json_schema: {
    /** Name of the format. */
    name: string;
    /** What it is for. */
    description?: string;
    /** JSON Schema or TypeBox schema of the answer. */
    schema: object;
    /** The provider's strict flag. Default: the provider's own. */
    strict?: boolean;
  };
}

/**
 * What tools may touch. Nothing is inferred from the process: without `capabilities.filesystem` file tools refuse to
 * work.
 */
export interface RuntimeContext {
  /** Id of the context, for your own use. */
  id?: string;
  /** What is allowed. */
  capabilities?: {
    /** Directories. */
    filesystem?: FilesystemCapability;
    /** A browser page. */
    browser?: { pageId?: string; tabId?: string };
    /** Hosts. */
    network?: { allowDomains?: string[] };
  };
  /** Environment variables of child processes, over the few they inherit. */
  environment?: Record<string, string>;
  /** Data of the application. */
  metadata?: JsonObject;
}

/** Directories that tools may touch. */
export interface FilesystemCapability {
  /** Absolute paths of directories. */
  roots: readonly string[];
  /** Absolute directory that relative paths start from; must lie inside a root. */
  cwd?: string;
}

/**
 * The runtime context at the moment a request was accepted, with what tools patched since. Later changes of its sources
 * do not reach it.
 */
export interface ContextSnapshot {
  /** The Session. */
  readonly sessionId: SessionId;
  /** The request or turn it was taken for. */
  readonly turnId: TurnId;
  /** The merged context. */
  readonly context: RuntimeContext;
  /** Directories that may be touched; empty without a file system capability. */
  readonly filesystemRoots: readonly string[];
  /** Working directory, if there is one. */
  readonly cwd?: string;
  /** Environment variables of child processes. */
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * A change of the runtime context by a tool: the fields to merge, directly or under `context`, which is stronger.
 *
 * They are merged over the context of the request as {@link mergeContext} does, and hold for the calls of later turns:
 * their `contextSnapshot`, directories and environment. The newest patch of a scope replaces the one before; one of scope
 * `'turn'` lies above that of scope `'session'`. `setDefaultContext` forgets those of the Session.
 *
 * `capabilities.filesystem.roots` is a security boundary: a tool of the application may move it, a remote one may not.
 */
export interface RuntimeContextPatch extends RuntimeContext {
  /** How long it lasts. Default `'session'`. */
  scope?: RuntimePatchScope;
  /** The fields to merge over the context. */
  context?: RuntimeContext;
  /**
   * Forgets earlier patches first. In scope `'session'` all of them, in scope `'turn'` those of the Session too, for the
   * rest of the request. Default false.
   */
  reset?: boolean;
}

/** `'turn'` ends with the request, `'session'` stays. */
export type RuntimePatchScope = 'turn' | 'session';

/**
 * A change of policy, discovery, prompt, environment or hooks by a tool. It holds from the next turn on. Fields that are
 * not listed here make it malformed.
 */
export interface RuntimePatch {
  /** How long it lasts. */
  scope: RuntimePatchScope;
  /** Who makes it. */
  source: 'skill' | 'tool' | 'system';
  /** The Skill behind it. A patch of a Skill without `toolPolicy` lifts the current policy. */
  skill?: RuntimePatchSkillInfo;
  /** Which tools are shown and can be called. A turn policy replaces the session policy while it lasts. */
  toolPolicy?: RuntimeToolPolicyPatch;
  /** Tools to declare from the next turn on, for the rest of the Session whatever `scope` says. */
  toolDiscovery?: RuntimeToolDiscoveryPatch;
  /** Model to go on with. */
  modelOverride?: RuntimeModelOverride;
  /** Text that follows the system prompt behind a line of `---`. The same text is appended once. */
  systemPromptAppend?: string;
  /** Environment variables to add for the calls that follow; stronger than those of the context. */
  environment?: Record<string, string>;
  /** Texts to append to what the user says. */
  hooks?: RuntimeHookRegistration[];
}

/** The Skill behind a {@link RuntimePatch}. */
export interface RuntimePatchSkillInfo {
  /** Identifier. */
  id: string;
  /** Name for people. */
  name: string;
  /** Directory it lives in. */
  basePath: string;
}

/**
 * Which tools are shown and can be called. A selector is a name, or `Name(…)`, which stands for the tool as a whole: what
 * its calls may contain is up to the permissions. `deny` is stronger, and counts for aliases too.
 */
export interface RuntimeToolPolicyPatch {
  /** Only these. Omitted: all. Empty: none. */
  allow?: string[];
  /** Never these. Default: none. */
  deny?: string[];
}

/** Which tools to declare. */
export interface RuntimeToolDiscoveryPatch {
  /** Names or aliases; those nobody has are left out. Default: none. */
  discover?: string[];
  /** Forgets what was discovered before first. Default false. */
  reset?: boolean;
}

/** Which model to go on with. */
export interface RuntimeModelOverride {
  /**
   * Id of a configured model: `default`, or its name. A Session of this version has one, so any other id is ignored with
   * a warning in the log.
   */
  modelId: string;
  /** How hard it shall think; not applied by this version. */
  effort?: string;
}

/** Events that texts can be registered for. */
export type RuntimeHookEvent = 'UserPromptSubmit';

/**
 * A text that follows the messages which start later requests, after a blank line and after the application's own hooks.
 * In scope `'turn'` it has no message to follow and does nothing.
 */
export interface RuntimeHookRegistration {
  /** When. */
  event: RuntimeHookEvent;
  /** What. */
  type: 'append_prompt';
  /** The text; not empty. */
  value: string;
  /** Whether it follows one message only. Default false. */
  once?: boolean;
}

/**
 * Merges contexts. `turn` is stronger: scalar fields override; `environment` and `metadata` merge by key; `filesystem`
 * merges but its `roots` are replaced as a whole; `browser` and `network` are replaced as a whole. The inputs are not
 * changed.
 */
export declare function mergeContext(base?: RuntimeContext, turn?: RuntimeContext): RuntimeContext;

/** The snapshot of a merged context. A deep copy: later changes of the inputs do not reach it. */
export declare function createContextSnapshot(
  sessionId: SessionId,
  turnId: TurnId,
  base?: RuntimeContext,
  turn?: RuntimeContext,
): ContextSnapshot;

/** Whether a context has a file system capability with at least one root. */
export declare function hasFilesystemCapability(
  context: RuntimeContext | undefined,
): context is RuntimeContext & { capabilities: { filesystem: FilesystemCapability } };

/**
 * Long-term memory that tools reach through the `memoryManager` service.
 *
 * **Contract** for all methods
 * - Called only by tools, which await them.
 * - May throw or reject: the tool call that made it fails.
 */
export interface MemoryManager {
  /** All memories, sorted by name. */
  list(): Promise<Memory[]>;
  /** The memory of a name, or `undefined`. */
  get(name: string): Promise<Memory | undefined>;
  /** Saves a memory; one of the same name is replaced. */
  save(memory: MemoryInput): Promise<unknown>;
  /** Deletes a memory. Deleting one that does not exist is no error. */
  delete(name: string): Promise<void>;
  /** Memories that hold the text in name, description or body, whatever the case. */
  search(query: string): Promise<Memory[]>;
}

/** A memory to save. */
export interface MemoryInput {
  /** Lower-case words joined by `-`; unique. */
  name: string;
  /** One line about it. */
  description: string;
  /** What it is about. */
  type: MemoryType;
  /** The text. */
  body: string;
}

/** A saved memory. */
export interface Memory extends MemoryInput {
  /** When it was saved, in milliseconds since the epoch. */
  updatedAt: number;
}

/** What a memory is about. */
export type MemoryType = 'user' | 'feedback' | 'project' | 'reference';

/**
 * Base of the errors of this package. `instanceof` works across copies of the package.
 *
 * Decide by `code`; `message` is for people and may change.
 */
export declare class SdkError extends Error {
  constructor(message: string, options?: SdkErrorOptions);
  /** Stable code. */
  readonly code: SdkErrorCode;
  /** HTTP status of the provider, for errors that come from one. */
  readonly status?: number;
  /** Facts for programs. */
  readonly details?: JsonObject;
  /** What led here, where known. */
  readonly cause?: unknown;
  /** Name, code, message, and status, details and cause where there are any, as plain data. */
  toJSON(): JsonObject;
}

/** Options of {@link SdkError}. */
export interface SdkErrorOptions {
  /** Stable code. Default `'INTERNAL'`; the subclasses have their own. */
  code?: SdkErrorCode;
  /** What led here. */
  cause?: unknown;
  /** HTTP status of the provider. */
  status?: number;
  /** Facts for programs. */
  details?: JsonObject;
}

/** Codes of {@link SdkError} and of `error` events. Later versions may add some. */
export type SdkErrorCode =
  /** Cancelled by the caller. */
  | 'ABORT'
  /** An option has a value that cannot be honoured. */
  | 'CONFIG_ERROR'
  /** A fault of this package; please report it. */
  | 'INTERNAL'
  /** The provider did not begin to answer within `requestTimeoutMs`. */
  | 'MODEL_REQUEST_TIMEOUT'
  /** A model stream was silent for longer than `streamIdleTimeoutMs`. */
  | 'MODEL_STREAM_IDLE_TIMEOUT'
  /** The provider answered with an error status, which `status` holds. */
  | 'MODEL_HTTP_ERROR'
  /** The provider could not be reached. */
  | 'MODEL_CONNECTION_ERROR'
  /** The model stream broke or carried an error. */
  | 'MODEL_STREAM_ERROR'
  /** The provider's answer was not of the documented form. */
  | 'MODEL_PROTOCOL_ERROR'
  /** A limit or a filter stopped the model before any text, or it declined to answer. */
  | 'MODEL_ANSWER_INCOMPLETE'
  /** Retrying cannot help, or the limit of retries was reached. */
  | 'CANNOT_RETRY'
  /** The conversation breaks a rule of the protocol, or a middleware made a request that is none. */
  | 'INVALID_MODEL_REQUEST'
  /** A model middleware threw or yielded something that is no chunk; `cause` is what it threw. */
  | 'MODEL_MIDDLEWARE_FAILED'
  /** The turn limit was reached. */
  | 'MAX_TURNS_EXCEEDED'
  /** A call was not permitted. */
  | 'PERMISSION_DENIED'
  /** A callback took longer than its deadline. */
  | 'HOOK_TIMEOUT'
  /** A hook objected. */
  | 'HOOK_ABORTED'
  /** A tool that was run directly failed. */
  | 'TOOL_EXECUTION_ERROR'
  /** Arguments do not fit the tool's schema. */
  | 'TOOL_VALIDATION_ERROR'
  /** A running tool yielded something that is no progress, message or effect, or a malformed effect. */
  | 'INVALID_TOOL_YIELD'
  /** A tool definition cannot be registered. */
  | 'TOOL_DEFINITION_ERROR'
  /** `toolLifecycle` could not store a boundary of a call. */
  | 'TOOL_LIFECYCLE_FAILED'
  /** Something ran out of control, so no tool runs in this Session any more; open a new one. */
  | 'SESSION_QUARANTINED'
  /** The Session is closed. */
  | 'SESSION_CLOSED'
  /** `stream` without a pending request. */
  | 'SESSION_NO_PENDING_MESSAGE'
  /** A tool or callback is still cleaning up; try again later. */
  | 'SESSION_BUSY'
  /** The environment that a callback lived in has ended. */
  | 'HOST_GONE'
  | ProviderRegistryErrorCode
  | SessionInputErrorCode
  | SessionHandoffErrorCode
  | (string & {});

/** The caller cancelled the operation. Not an {@link SdkError}: cancelling is not a failure. */
export declare class AbortError extends Error {
  constructor(message?: string, options?: { cause?: unknown });
  readonly name: 'AbortError';
  /** Stable code. */
  readonly code: 'ABORT';
}

/** An option has a value that cannot be honoured. */
export declare class ConfigError extends SdkError {
  constructor(message: string, options?: Omit<SdkErrorOptions, 'code'>);
  override readonly code: 'CONFIG_ERROR';
}

/** A callback took longer than its deadline. */
export declare class HookTimeoutError extends SdkError {
  constructor(message: string, options?: Omit<SdkErrorOptions, 'code'>);
  override readonly code: HookTimeoutErrorCode;
}

/** Codes of {@link HookTimeoutError}. */
export type HookTimeoutErrorCode = 'HOOK_TIMEOUT';

/** The model took too long. A timeout is not a cancellation by the caller. */
export declare class ModelTimeoutError extends SdkError {
  constructor(message: string, options: Omit<SdkErrorOptions, 'code'> & { code: ModelTimeoutErrorCode });
  override readonly code: ModelTimeoutErrorCode;
}

/** Codes of {@link ModelTimeoutError}: the whole call, or the silence of a stream. */
export type ModelTimeoutErrorCode = 'MODEL_REQUEST_TIMEOUT' | 'MODEL_STREAM_IDLE_TIMEOUT';

/** Something was not permitted. Tool calls that are not permitted are results, not this. */
export declare class PermissionDeniedError extends SdkError {
  constructor(message: string, options?: Omit<SdkErrorOptions, 'code'>);
  override readonly code: 'PERMISSION_DENIED';
}

/** A provider type has no adapter, or an adapter is not usable. */
export declare class ProviderRegistryError extends SdkError {
  constructor(
    message: string,
    options: Omit<SdkErrorOptions, 'code'> & { code: ProviderRegistryErrorCode; providerType: string },
  );
  override readonly code: ProviderRegistryErrorCode;
  /** The provider type. */
  readonly providerType: string;
}

/** Codes of {@link ProviderRegistryError}. */
export type ProviderRegistryErrorCode =
  | 'PROVIDER_ADAPTER_NOT_FOUND'
  | 'PROVIDER_ADAPTER_INVALID'
  | 'PROVIDER_ADAPTER_DUPLICATE';

/** A Session cannot be handed to another process. */
export declare class SessionHandoffError extends SdkError {
  constructor(
    message: string,
    options: Omit<SdkErrorOptions, 'code'> & {
      code: SessionHandoffErrorCode;
      activeSubagentIds?: readonly string[];
      activeShellIds?: readonly string[];
    },
  );
  override readonly code: SessionHandoffErrorCode;
  /** Agents that still run. */
  readonly activeSubagentIds: readonly string[];
  /** Shells that still run. */
  readonly activeShellIds: readonly string[];
}

/** Codes of {@link SessionHandoffError}. */
export type SessionHandoffErrorCode =
  | 'SESSION_HANDOFF_NOT_CONFIGURED'
  | 'SESSION_HANDOFF_UNAVAILABLE'
  | 'SESSION_HANDOFF_ACTIVE_WORK';

/** A Session cannot take an input now, or not with these options. */
export declare class SessionInputError extends SdkError {
  constructor(message: string, options: Omit<SdkErrorOptions, 'code'> & { code: SessionInputErrorCode });
  override readonly code: SessionInputErrorCode;
}

/** Codes of {@link SessionInputError}. */
export type SessionInputErrorCode =
  | 'SESSION_REQUEST_MISMATCH'
  | 'SESSION_INPUT_OPTIONS_UNSUPPORTED'
  | 'SESSION_INPUT_QUEUE_FULL'
  | 'SESSION_STEERING_UNAVAILABLE';

/** A tool that was run outside of a Session failed. */
export declare class ToolExecutionError extends SdkError {
  constructor(message: string, options: Omit<SdkErrorOptions, 'code'> & { toolName: string });
  override readonly code: 'TOOL_EXECUTION_ERROR';
  /** Name of the tool. */
  readonly toolName: string;
}

/** The string `code` of anything thrown, or `undefined`. */
export declare function getErrorCode(error: unknown): string | undefined;

/** The message of anything thrown; never throws itself. */
export declare function getErrorMessage(error: unknown): string;

/** The name of anything thrown: the error's `name`, else `'Error'`. */
export declare function getErrorName(error: unknown): string;

/** Anything thrown as an `Error`: errors as they are, other values wrapped with the value as `cause`. */
export declare function toError(value: unknown): Error;

/**
 * One layer around an operation.
 *
 * **Contract**
 * - Whoever runs the composed operation awaits the result, so a layer that never settles holds it up.
 * - May throw or reject: the layer outside of it sees the error.
 * - May call `next` once, or not at all to answer in its place.
 */
export type Middleware<TRequest, TResult> = (request: TRequest, next: MiddlewareNext<TRequest, TResult>) => TResult;

/** Runs the next layer with the given request, or the current one. A second call throws. */
export type MiddlewareNext<TRequest, TResult> = (request?: TRequest) => TResult;

/** Wraps an operation in layers; the first one is outermost. `terminal` is the operation itself. */
export declare function composeMiddleware<TRequest, TResult>(
  middleware: readonly Middleware<TRequest, TResult>[],
  terminal: (request: TRequest) => TResult,
): (request: TRequest) => TResult;

/** Middleware of a Session or a plugin. The first of a list is outermost. */
export interface AgentMiddlewareConfig {
  /** Around model calls. Default: none. */
  readonly model?: readonly ModelMiddleware[];
  /** Around tool calls. Default: none. */
  readonly tool?: readonly ToolMiddleware[];
}

/**
 * A layer around model operations. At least one of the functions is there; an operation whose function is missing
 * passes through.
 *
 * A Session asks its model by `streamChat` alone, so only `wrapStream` runs there; the others are for
 * {@link wrapModelService}. A layer that answers by itself, without `next`, costs no model call. What it changes in
 * `messages` and `tools` is what the model sees, and does not change the Session's history; what it yields is what the
 * Session takes for the model's answer.
 *
 * ```ts
 * const shout: ModelMiddleware = {
 *   async *wrapStream(request, next) {
 *     const hint: ModelMessage = { role: 'system', content: 'Answer in one line.' };
 *     for await (const chunk of next({ ...request, messages: [hint, ...request.messages] })) {
 *       yield chunk.content === undefined ? chunk : { ...chunk, content: chunk.content.toUpperCase() };
 *     }
 *   },
 * };
 * ```
 *
 * **Contract**
 * - `request` and everything in it is frozen. `next` takes a request made from it: `operation`, `model` and `signal`
 *   stay, everything else is JSON and copied. A second `next` in one call throws, and so does another `operation`.
 * - Awaited by the model call. A generator is read as fast as its consumer takes; when it ends early, or is left, the
 *   one that `next` gave is closed.
 * - May throw or reject: the layer outside of it sees the error. What leaves the outermost layer of a Session fails the
 *   request: an error of the model that came through unchanged keeps its code, anything else is
 *   `MODEL_MIDDLEWARE_FAILED` with what was thrown as `cause`. Retries of the provider happen inside of all layers.
 * - Must observe `request.signal`. When it aborts, the layer has 5 seconds to end; one that goes on keeps new tool calls
 *   and `close` refused until it settles. Silence of a layer that does not wait for `next` is bounded by the provider's
 *   `streamIdleTimeoutMs`.
 */
export interface ModelMiddleware {
  /** Around {@link ModelService.chat}. */
  wrapChat?(
    request: ModelChatRequest,
    next: MiddlewareNext<ModelChatRequest, Promise<ModelResponse>>,
  ): Promise<ModelResponse>;
  /** Around {@link ModelService.sideQuery}. */
  wrapSideQuery?(
    request: ModelSideQueryRequest,
    next: MiddlewareNext<ModelSideQueryRequest, Promise<ModelResponse>>,
  ): Promise<ModelResponse>;
  /** Around {@link ModelService.streamChat}, and around every model call of a Session. */
  wrapStream?(
    request: ModelStreamRequest,
    next: MiddlewareNext<ModelStreamRequest, AsyncGenerator<ModelStreamChunk, void, void>>,
  ): AsyncGenerator<ModelStreamChunk, void, void>;
  /** Around {@link ModelService.chatWithRetryEvents}, for services that have it. */
  wrapChatWithRetryEvents?(
    request: ModelRetryRequest,
    next: MiddlewareNext<ModelRetryRequest, AsyncGenerator<ModelRetryEvent, ModelResponse, void>>,
  ): AsyncGenerator<ModelRetryEvent, ModelResponse, void>;
}

/** What the requests of a {@link ModelMiddleware} have in common. */
interface ModelRequestBase<TOperation extends string> {
  /** Which operation is under way. */
  readonly operation: TOperation;
  /** Model name. */
  readonly model: string;
  /** The conversation, a system message in front included. */
  readonly messages: readonly ModelMessage[];
  /** Aborts when the answer is no longer wanted. In a Session always there. */
  readonly signal?: AbortSignal;
}

/** Request of {@link ModelMiddleware.wrapChat}. */
export interface ModelChatRequest extends ModelRequestBase<'chat'> {
  /** The tools the model is told of; absent if there are none. Handing on `undefined` takes them away. */
  readonly tools?: readonly ModelToolDefinition[] | undefined;
}

/** Request of {@link ModelMiddleware.wrapSideQuery}. */
export interface ModelSideQueryRequest extends ModelRequestBase<'sideQuery'> {
  /** Options of the query, if any were given. */
  readonly options?: Readonly<ModelSideQueryOptions> | undefined;
}

/** Request of {@link ModelMiddleware.wrapStream}. */
export interface ModelStreamRequest extends ModelRequestBase<'streamChat'> {
  /** The tools the model is told of; absent if there are none. Handing on `undefined` takes them away. */
  readonly tools?: readonly ModelToolDefinition[] | undefined;
}

/** Request of {@link ModelMiddleware.wrapChatWithRetryEvents}. */
export interface ModelRetryRequest extends ModelRequestBase<'chatWithRetryEvents'> {
  /** The tools the model is told of; absent if there are none. Handing on `undefined` takes them away. */
  readonly tools?: readonly ModelToolDefinition[] | undefined;
}

/**
 * A model service with layers around its operations; the first of the list is outermost. `getConfig` and `updateConfig`
 * are the service's own. Errors keep their identity.
 *
 * @throws {ConfigError} The service lacks an operation, or the list holds something that is no middleware.
 */
export declare function wrapModelService(service: ModelService, middleware: readonly ModelMiddleware[]): ModelService;

/**
 * A layer around tool calls: may change the input, answer in the tool's place, or change the result. Written as
 * `async function* (request, next)`, or as a function that gives `next(request)`.
 *
 * **Contract**
 * - `request` and its input are frozen. `next` takes a request made from it: `toolName` and `context` stay, and a changed
 *   input is validated and judged like one of the model. An input that is handed on as it is stays the model's own text,
 *   also where its numbers are larger than JavaScript can hold. Breaking a rule fails the call, whatever follows.
 * - The call runs from the first `next()` of the generator on, at most once. A layer that leaves before it has read the
 *   result of a call it started does not stop it: the call runs to its end, what it still says is published, and its
 *   result is the one that counts.
 * - An error or a timeout of the call cannot become a success. An answer without the call counts as a started call.
 * - May throw or reject: the call is an error result with code `TOOL_MIDDLEWARE_FAILED`, unless it failed itself.
 * - Has no time limit of its own. Must observe `request.context.signal`: when it aborts, the layers have 10 seconds to
 *   end; while they go on, new tool calls are refused and `close()` rejects with code `SESSION_BUSY`.
 */
export type ToolMiddleware = Middleware<ToolMiddlewareRequest, ToolExecution>;

/** A tool call, as a {@link ToolMiddleware} sees it. */
export interface ToolMiddlewareRequest {
  /** Name of the tool. */
  readonly toolName: string;
  /** Arguments of the call. */
  readonly input: JsonObject;
  /** What the call knows of its Session. */
  readonly context: ExecutionContext;
}

/** Registers something to clean up when {@link gracefulShutdown} runs. Live Sessions register themselves. */
export declare function registerCleanup(cleanup: CleanupFn): CleanupHandle;

/**
 * Cleans up.
 *
 * **Contract**
 * - Called once by {@link gracefulShutdown}, at the same time as the others, and awaited up to its timeout.
 * - May throw or reject: the error goes to `onError` and the others run on.
 * - May never settle: the shutdown stops waiting after its timeout.
 */
export type CleanupFn = () => void | Promise<void>;

/** Takes a registration back. */
export interface CleanupHandle {
  /** Removes the registration; does nothing the second time. */
  unregister(): void;
}

/** Runs all registered cleanups at once. Never rejects. A call while one is running resolves at once. */
export declare function gracefulShutdown(options?: GracefulShutdownOptions): Promise<void>;

/** Options of {@link gracefulShutdown}. */
export interface GracefulShutdownOptions {
  /** How long to wait, in milliseconds; 0 or less waits for ever. Default 5000. */
  timeoutMs?: number;
  /**
   * Receives the errors of cleanups. Default: they are dropped.
   *
   * **Contract**
   * - Called once an error; not awaited.
   * - May throw: the error is swallowed.
   */
  onError?: (error: unknown) => void;
}

/** Forgets all registered cleanups without running them; for tests. */
export declare function resetCleanupRegistry(): void;

/**
 * What class of action a tool performs; decides what the modes allow and which concurrency limit counts.
 *
 * The values are the strings `'readonly'`, `'write'` and `'execute'` at run time. Only the constants are accepted where
 * a `ToolKind` is expected, so that a misspelt kind cannot compile; comparing with a literal works.
 */
export declare const ToolKind: {
  /** Looks, does not touch. */
  readonly ReadOnly: Branded<'readonly', 'ToolKind'>;
  /** Changes files or stored state. */
  readonly Write: Branded<'write', 'ToolKind'>;
  /** Runs something. */
  readonly Execute: Branded<'execute', 'ToolKind'>;
};
/** What class of action a tool performs; take the values from the constants. */
export type ToolKind = (typeof ToolKind)[keyof typeof ToolKind];

/** Whether repeating a call is safe. Independent of {@link ToolKind}. */
export declare const ToolSideEffect: {
  /** Changes nothing outside; may be replayed. */
  readonly PURE: 'pure';
  /** Repeating reaches the same state; may be replayed. */
  readonly IDEMPOTENT: 'idempotent';
  /** Repeating may add effects; never replayed. */
  readonly NON_IDEMPOTENT: 'non_idempotent';
};
/** Whether repeating a call is safe. */
export type ToolSideEffect = (typeof ToolSideEffect)[keyof typeof ToolSideEffect];

/** Class of a {@link ToolError}. */
export declare const ToolErrorType: {
  /** The arguments do not fit the schema or a precondition. */
  readonly VALIDATION_ERROR: 'validation_error';
  /** Not permitted. */
  readonly PERMISSION_DENIED: 'permission_denied';
  /** Ran and failed. */
  readonly EXECUTION_ERROR: 'execution_error';
  /** Was cancelled. */
  readonly INTERRUPTED: 'interrupted';
  /** Took too long. */
  readonly TIMEOUT_ERROR: 'timeout_error';
  /** The network failed. */
  readonly NETWORK_ERROR: 'network_error';
};
/** Class of a {@link ToolError}. */
export type ToolErrorType = (typeof ToolErrorType)[keyof typeof ToolErrorType];

/** What may run without a question. */
export declare const PermissionMode: {
  /** Reading runs; writing and executing ask. */
  readonly DEFAULT: 'default';
  /** Reading and writing run; executing asks. */
  readonly AUTO_EDIT: 'autoEdit';
  /** Everything runs but destructive calls, which ask. */
  readonly YOLO: 'yolo';
  /** Only reading runs; the rest is denied. */
  readonly PLAN: 'plan';
};
/** What may run without a question. */
export type PermissionMode = (typeof PermissionMode)[keyof typeof PermissionMode];

/** Decision about a tool call. */
export declare const PermissionDecision: {
  /** It runs. */
  readonly ALLOW: 'allow';
  /** It does not. */
  readonly DENY: 'deny';
  /** It needs confirmation. */
  readonly ASK: 'ask';
};
/** Decision about a tool call. */
export type PermissionDecision = (typeof PermissionDecision)[keyof typeof PermissionDecision];

/** When an input applies that is sent while a request is in flight. */
export declare const InputPriority: {
  /** At once, interrupting the model call. */
  readonly NOW: 'now';
  /** At the next safe point of the request. */
  readonly NEXT: 'next';
  /** As a request of its own, afterwards. */
  readonly LATER: 'later';
};
/** When an input applies that is sent while a request is in flight. */
export type InputPriority = (typeof InputPriority)[keyof typeof InputPriority];

/** Points of a Session's life that hooks can observe. */
export declare const HookEvent: {
  /** A Session was created. */
  readonly SessionStart: 'SessionStart';
  /** A message is about to start a request. */
  readonly UserPromptSubmit: 'UserPromptSubmit';
  /** A tool is about to run. */
  readonly PreToolUse: 'PreToolUse';
  /** A call is about to be judged. */
  readonly PermissionRequest: 'PermissionRequest';
  /** A tool succeeded. */
  readonly PostToolUse: 'PostToolUse';
  /** A tool failed. */
  readonly PostToolUseFailure: 'PostToolUseFailure';
  /** A request succeeded. */
  readonly TaskCompleted: 'TaskCompleted';
  /** A Session is closing. */
  readonly SessionEnd: 'SessionEnd';
};
/** A point of a Session's life that hooks can observe. */
export type HookEvent = (typeof HookEvent)[keyof typeof HookEvent];

/** Events a Session runs hooks for: all of them. */
export type SessionHookEvent = HookEvent;

/** Callbacks by event. Those of one event run one after another in their order, all with the same input. */
export type InlineHooks = { readonly [TEvent in HookEvent]?: readonly HookCallback<TEvent>[] };

/**
 * A hook.
 *
 * **Contract**
 * - Awaited: what it is about does not go on before it has settled.
 * - May throw or reject: a tool hook makes the call an error result (one of `PostToolUseFailure` is only logged), every
 *   other hook fails what it is about.
 * - Must observe `input.abortSignal`: one that goes on after its deadline or after its request was cancelled keeps new
 *   tool calls, later hooks and `close` refused until it settles.
 */
export type HookCallback<TEvent extends HookEvent = HookEvent> = (input: HookInput<TEvent>) => Promise<HookOutput>;

/** What a hook answers. */
export interface HookOutput {
  /**
   * `continue` goes on. `skip` and `abort` stop: answers of later callbacks of the event no longer count.
   *
   * | event | `skip` | `abort` |
   * |---|---|---|
   * | `PreToolUse` | the tool does not run; the call succeeds with `reason` | the tool does not run; the call fails |
   * | `PermissionRequest` | the call is denied | the call is denied and the request ends |
   * | `PostToolUse`, `PostToolUseFailure` | - | the call fails with `reason` |
   * | `UserPromptSubmit` | the request fails | the request fails |
   * | `SessionStart`, `TaskCompleted`, `SessionEnd` | - | opening, request or closing fails |
   */
  action: 'continue' | 'skip' | 'abort';
  /** Fields merged into the input of a tool call, or `{ userPrompt }`. Checked again like any other input. */
  modifiedInput?: JsonObject;
  /** What the model is told in place of the tool's result; the last one wins. Values other than strings become JSON. */
  modifiedOutput?: JsonValue;
  /** Why. */
  reason?: string;
}

/** What a hook is called with: common fields, and those of its event. */
export type HookInput<TEvent extends HookEvent = HookEvent> = {
  [TName in TEvent]: HookInputBase<TName> & HookInputFields[TName];
}[TEvent];

/** Fields of every {@link HookInput}. */
export interface HookInputBase<TEvent extends HookEvent> {
  /** The event. */
  readonly event: TEvent;
  /** The Session. */
  readonly sessionId: SessionId;
  /** Fires when the request is cancelled or the deadline has passed. */
  readonly abortSignal: AbortSignal;
}

/** Fields of each event's {@link HookInput}. */
export interface HookInputFields {
  /** The Session was opened. */
  SessionStart: { readonly isResume: boolean; readonly resumeSessionId?: SessionId };
  /** A message is about to be sent to the model. */
  UserPromptSubmit: { readonly userPrompt: string; readonly hasImages: boolean; readonly imageCount: number };
  /** A tool call is about to be checked. */
  PreToolUse: { readonly toolName: string; readonly toolInput: JsonObject };
  /** A tool call is about to be judged, before `permissionHandler`. */
  PermissionRequest: {
    readonly toolName: string;
    readonly toolInput: JsonObject;
    readonly affectedPaths: string[];
    readonly toolKind: ToolKind;
  };
  /** A tool call succeeded. */
  PostToolUse: { readonly toolName: string; readonly toolInput: JsonObject; readonly toolOutput: JsonValue };
  /** A tool call failed or was refused. */
  PostToolUseFailure: {
    readonly toolName: string;
    readonly toolInput: JsonObject;
    readonly toolOutput: JsonValue;
    readonly error: Error;
  };
  /** A request succeeded; its end is not published yet. */
  TaskCompleted: {
    readonly taskId: string;
    readonly taskDescription: string;
    readonly hasImages: boolean;
    readonly imageCount: number;
    readonly resultSummary: string;
    readonly success: boolean;
  };
  /** The Session closes. Called at most once. */
  SessionEnd: { readonly reason: string };
}

/** Middleware, hooks and tools that belong together. */
export interface AgentPlugin {
  /** Unique in a Session. */
  readonly name: string;
  /** Its middleware, inside of that of the Session's options. */
  readonly middleware?: AgentMiddlewareConfig;
  /** Its hooks. */
  readonly hooks?: InlineHooks;
  /** Its tools. */
  readonly tools?: readonly ToolDefinition[];
}

/**
 * Checks a plugin and freezes it.
 *
 * @throws {ConfigError} The name is empty, an event does not exist, or a list is none or holds what does not belong there.
 */
export declare function definePlugin(plugin: AgentPlugin): AgentPlugin;

/** Who speaks in a message. */
export declare const MessageRole: {
  /** Instructions. */
  readonly SYSTEM: 'system';
  /** The user. */
  readonly USER: 'user';
  /** The model. */
  readonly ASSISTANT: 'assistant';
  /** The result of a tool call. */
  readonly TOOL: 'tool';
};
/** Who speaks in a message. */
export type MessageRole = (typeof MessageRole)[keyof typeof MessageRole];

/** Types of {@link SessionStreamEvent}, which describes each. */
export declare const SessionStreamEventType: {
  readonly TURN_START: 'turn_start';
  readonly TURN_END: 'turn_end';
  readonly TURN_INTERRUPTED: 'turn_interrupted';
  readonly INPUT_APPLIED: 'input_applied';
  readonly CONTENT: 'content';
  readonly THINKING: 'thinking';
  readonly TOOL_USE: 'tool_use';
  readonly TOOL_PROGRESS: 'tool_progress';
  readonly TOOL_MESSAGE: 'tool_message';
  readonly TOOL_RUNTIME_PATCH: 'tool_runtime_patch';
  readonly TOOL_CONTEXT_PATCH: 'tool_context_patch';
  readonly TOOL_NEW_MESSAGES: 'tool_new_messages';
  readonly TOOL_PERMISSION_UPDATES: 'tool_permission_updates';
  readonly TOOL_RESULT: 'tool_result';
  readonly USAGE: 'usage';
  readonly RESULT: 'result';
  readonly ERROR: 'error';
};
/** Type of a {@link SessionStreamEvent}. */
export type SessionStreamEventType = SessionStreamEvent['type'];

/**
 * A value that only its constants or its constructor give, so that one kind of id cannot stand in for another. The mark
 * exists for the compiler alone; at run time there is only the value.
 */
type Branded<TValue, TBrand extends string> = TValue & { readonly '~brand': TBrand };

/** Id of an agent. */
export type AgentId = Branded<string, 'AgentId'>;
/** Marks a string as an AgentId; gives the same string back. */
export declare const AgentId: (value: string) => AgentId;

/** Id of a command that must take effect once. */
export type CommandId = Branded<string, 'CommandId'>;
/** Marks a string as a CommandId; gives the same string back. */
export declare const CommandId: (value: string) => CommandId;

/** Id of a lease of credentials. */
export type CredentialLeaseId = Branded<string, 'CredentialLeaseId'>;
/** Marks a string as a CredentialLeaseId; gives the same string back. */
export declare const CredentialLeaseId: (value: string) => CredentialLeaseId;

/** Id of an event of a journal. */
export type EventId = Branded<string, 'EventId'>;
/** Marks a string as an EventId; gives the same string back. */
export declare const EventId: (value: string) => EventId;

/** Number of an event within its journal, counting up. */
export type EventSequence = Branded<number, 'EventSequence'>;
/** Marks a number as an EventSequence; gives the same number back. */
export declare const EventSequence: (value: number) => EventSequence;

/** Id of a checkpoint of an execution. */
export type ExecutionCheckpointId = Branded<string, 'ExecutionCheckpointId'>;
/** Marks a string as an ExecutionCheckpointId; gives the same string back. */
export declare const ExecutionCheckpointId: (value: string) => ExecutionCheckpointId;

/** Id of an execution. */
export type ExecutionId = Branded<string, 'ExecutionId'>;
/** Marks a string as an ExecutionId; gives the same string back. */
export declare const ExecutionId: (value: string) => ExecutionId;

/** Id of a lease of an execution. */
export type ExecutionLeaseId = Branded<string, 'ExecutionLeaseId'>;
/** Marks a string as an ExecutionLeaseId; gives the same string back. */
export declare const ExecutionLeaseId: (value: string) => ExecutionLeaseId;

/** Number of an owner of a lease; the larger one is newer. */
export type FencingToken = Branded<number, 'FencingToken'>;
/** Marks a number as a FencingToken; gives the same number back. */
export declare const FencingToken: (value: number) => FencingToken;

/** Id of an accepted input. */
export type InputId = Branded<string, 'InputId'>;
/** Marks a string as an InputId; gives the same string back. */
export declare const InputId: (value: string) => InputId;

/** Id of a message of a conversation. */
export type MessageId = Branded<string, 'MessageId'>;
/** Marks a string as a MessageId; gives the same string back. */
export declare const MessageId: (value: string) => MessageId;

/** Id of one attempt of a model call. */
export type ModelAttemptId = Branded<string, 'ModelAttemptId'>;
/** Marks a string as a ModelAttemptId; gives the same string back. */
export declare const ModelAttemptId: (value: string) => ModelAttemptId;

/** Id of a part of a message. */
export type PartId = Branded<string, 'PartId'>;
/** Marks a string as a PartId; gives the same string back. */
export declare const PartId: (value: string) => PartId;

/** Id of a question for permission. */
export type PermissionRequestId = Branded<string, 'PermissionRequestId'>;
/** Marks a string as a PermissionRequestId; gives the same string back. */
export declare const PermissionRequestId: (value: string) => PermissionRequestId;

/** Id of a request of a Session. */
export type RequestId = Branded<string, 'RequestId'>;
/** Marks a string as a RequestId; gives the same string back. */
export declare const RequestId: (value: string) => RequestId;

/** Id of a Session. A non-empty single path segment. */
export type SessionId = Branded<string, 'SessionId'>;
/**
 * Marks a string as a SessionId; gives the same string back.
 *
 * @throws {TypeError} It is empty, `.` or `..`, or holds `/`, `\` or NUL.
 */
export declare const SessionId: (value: string) => SessionId;

/** Id of a span of a trace. */
export type SpanId = Branded<string, 'SpanId'>;
/** Marks a string as a SpanId; gives the same string back. */
export declare const SpanId: (value: string) => SpanId;

/** Id of one attempt of a tool call. */
export type ToolAttemptId = Branded<string, 'ToolAttemptId'>;
/** Marks a string as a ToolAttemptId; gives the same string back. */
export declare const ToolAttemptId: (value: string) => ToolAttemptId;

/** Id of a tool call, as the model named it. */
export type ToolUseId = Branded<string, 'ToolUseId'>;
/** Marks a string as a ToolUseId; gives the same string back. */
export declare const ToolUseId: (value: string) => ToolUseId;

/** Id of an event of a trace. */
export type TraceEventId = Branded<string, 'TraceEventId'>;
/** Marks a string as a TraceEventId; gives the same string back. */
export declare const TraceEventId: (value: string) => TraceEventId;

/** Id of a trace. */
export type TraceId = Branded<string, 'TraceId'>;
/** Marks a string as a TraceId; gives the same string back. */
export declare const TraceId: (value: string) => TraceId;

/** Id of a turn. */
export type TurnId = Branded<string, 'TurnId'>;
/** Marks a string as a TurnId; gives the same string back. */
export declare const TurnId: (value: string) => TurnId;

/** Id of a worker process. */
export type WorkerId = Branded<string, 'WorkerId'>;
/** Marks a string as a WorkerId; gives the same string back. */
export declare const WorkerId: (value: string) => WorkerId;

// biome-ignore lint/complexity/noUselessEmptyExport: without it unmarked declarations are exported too
export {};
