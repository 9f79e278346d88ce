/**
 * Public types of `@blade-ai/agent-sdk/advanced`: everything of the root, with Sessions of the local profile and the
 * built-in tools.
 *
 * ```ts
 * import { createSession } from '@blade-ai/agent-sdk/advanced';
 *
 * await using session = await createSession({
 *   provider: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8080/v1' },
 *   model: 'local-model',
 *   defaultContext: { capabilities: { filesystem: { roots: ['/srv/project'], cwd: '/srv/project' } } },
 * });
 * ```
 */

import type { TSchema } from 'typebox';
import type {
  ExecutionContext,
  ISession,
  JsonObject,
  Memory,
  MemoryInput,
  PromptResult,
  MemoryManager as RootMemoryManager,
  SessionOptions,
  ToolBehavior,
  ToolDefinition,
  ToolDisplayContent,
  ToolErrorType,
  ToolModelContent,
  ToolParameters,
  ToolResultMetadata,
  UserMessageContent,
} from './index.js';

export * from './index.js';

/**
 * Creates a Session of the local profile: the built-in tools are registered beside your own.
 *
 * File tools work only within `defaultContext.capabilities.filesystem`; nothing is taken from the process. Otherwise it
 * is the root's `createSession`, with the same options and errors.
 *
 * @throws {ConfigError} An option has a value that cannot be honoured.
 * @throws {SdkError} Two tools share a name or alias, or a schema cannot be compiled (`TOOL_DEFINITION_ERROR`).
 * @throws {ProviderRegistryError} `provider.type` has no adapter (`PROVIDER_ADAPTER_NOT_FOUND`).
 */
export declare function createSession(options: SessionOptions): Promise<ISession>;

/**
 * Sends one message to a local Session of its own, waits for the result and closes the Session, whatever happens.
 *
 * @throws {SdkError} The request failed; `code` is the code of its `error` event.
 */
export declare function prompt(message: UserMessageContent, options: SessionOptions): Promise<PromptResult>;

/** Same function as `createSession` of this entry point. */
export declare const createNodeSession: typeof createSession;

/** Same function as `prompt` of this entry point. */
export declare const promptNode: typeof prompt;

/** Same function as `createSession` of the root: server profile, no built-in tools, no access to the host. */
export declare function createServerSession(options: SessionOptions): Promise<ISession>;

/** Same function as `prompt` of the root: server profile. */
export declare function promptServer(message: UserMessageContent, options: SessionOptions): Promise<PromptResult>;

/**
 * The built-in tools, in their documented order; `docs/tools.md` describes each. A local Session registers them by
 * itself. The list is a new one every time, its entries are shared.
 *
 * Calling `execute` of one directly skips permission and deadline; the schema and the tool's own checks still hold.
 * `Write` and `Edit` of an existing file need `context.sessionId` even then: without it the earlier `Read` cannot be
 * verified and the call fails.
 */
export declare function getBuiltinTools(): Promise<ToolDefinition[]>;

/**
 * A tool in the runtime protocol itself: for parts of a system that offer tools, not for authors of tools, who have
 * `defineTool`. A Session takes it in `tools` like any other.
 *
 * `execute` is an async generator: it yields updates and returns a `ToolResult`. What is left out has the value
 * `defineTool` would give it.
 */
export interface RuntimeTool<TParameters extends TSchema = TSchema> extends ToolDefinition<TParameters> {
  /** Whether calls only look. Default: whether `kind` is `ToolKind.ReadOnly`. */
  isReadOnly?: boolean;
  /** Whether calls may use a file together with others that read it. Default: whether `kind` is `ToolKind.ReadOnly`. */
  isConcurrencySafe?: boolean;
  /** Whether calls are asked about in every mode. Default false. */
  isDestructive?: boolean;
  /** What a `now` input does to a call. `'cancel'` only for tools that stop on their signal. Default `'block'`. */
  interruptBehavior?: 'block' | 'cancel';
  /** Longest string result in characters; longer ones become artifacts. A positive integer. Default: no limit. */
  maxResultSizeChars?: number;
  /**
   * What one call does, where it does less than the tool declares.
   *
   * **Contract**
   * - Called after validation and again after each rewrite of the input, with a copy; planning uses the declaration.
   * - What it leaves out stays as declared. It may also make a call destructive.
   * - When it throws, answers in the wrong form, or claims more than the tool declares, the call counts as executing,
   *   not idempotent and exclusive.
   */
  resolveBehavior?(params: ToolParameters<TParameters>): Partial<ToolBehavior> | Promise<Partial<ToolBehavior>>;
  /**
   * Checks beyond the schema.
   *
   * **Contract**
   * - Called after the schema matched and again after each rewrite of the input. Must not change anything.
   * - Resolves to what is wrong, or to `undefined`. May throw: the call is a `validation_error`.
   * - Should stop when `context.signal` aborts; one that does not is held against the Session like a permission
   *   handler.
   */
  validate?(
    params: ToolParameters<TParameters>,
    context: ExecutionContext,
  ): ToolValidationError | undefined | Promise<ToolValidationError | undefined>;
  /**
   * What the tool itself says about a call, before anybody else is asked.
   *
   * **Contract**
   * - Called once a call, after the input was checked. `'allow'` leaves the decision to the others; `updatedInput` is
   *   merged and checked again. `'ask'` has a person confirm the call in every mode, `'deny'` is final.
   * - May throw or answer in the wrong form: the call is denied.
   * - Should stop when `context.signal` aborts; see `validate`.
   */
  checkPermissions?(
    params: ToolParameters<TParameters>,
    context: ExecutionContext,
  ): ToolPermissionVerdict | Promise<ToolPermissionVerdict>;
}

/** What {@link RuntimeTool.checkPermissions} says. */
export type ToolPermissionVerdict =
  | { behavior: 'allow'; updatedInput?: JsonObject }
  | { behavior: 'deny'; message: string; interrupt?: boolean }
  | { behavior: 'ask'; message?: string };

/** What {@link RuntimeTool.validate} found. */
export interface ToolValidationError {
  /** What is wrong and what would do. */
  message: string;
  /** What the model is told. Default: `message`. */
  model?: ToolModelContent;
  /** What a user interface may show. */
  display?: ToolDisplayContent;
  /** Facts about the result. */
  metadata?: ToolResultMetadata;
  /** Default `'validation_error'`. */
  errorType?: ToolErrorType;
}

/**
 * Long-term memory over a store of yours; pass it as `SessionOptions.memoryManager`, and tools that declare the
 * `memoryManager` service get it in their context.
 *
 * @throws {ConfigError} The store lacks a method.
 */
export declare class MemoryManager implements RootMemoryManager {
  constructor(store: MemoryStore);
  /** Saves a memory; one of the same name is replaced. */
  save(memory: MemoryInput): Promise<Memory>;
  /** The memory of a name, or `undefined`. */
  get(name: string): Promise<Memory | undefined>;
  /** Deletes a memory. Deleting one that does not exist is no error. */
  delete(name: string): Promise<void>;
  /** All memories, sorted by name. */
  list(): Promise<Memory[]>;
  /** Memories that hold the text in name, description or body, whatever the case. */
  search(query: string): Promise<Memory[]>;
  /** One line for each memory, or `(no memories saved)`. */
  readIndexContent(): Promise<string>;
}

/**
 * Where memories are kept.
 *
 * **Contract** for all methods
 * - Called by {@link MemoryManager}, which passes results and errors on as they are.
 * - May throw or reject: the call of the manager rejects.
 * - Must settle: whoever called the manager waits for it.
 */
export interface MemoryStore {
  /** Saves a memory and gives it back with `updatedAt`. */
  save(memory: MemoryInput): Promise<Memory>;
  /** The memory of a name, or `undefined`. */
  get(name: string): Promise<Memory | undefined>;
  /** All memories, in any order. */
  list(): Promise<Memory[]>;
  /** Deletes a memory if it exists. */
  delete(name: string): Promise<void>;
}
