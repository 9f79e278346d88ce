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

import type {
  ISession,
  Memory,
  MemoryInput,
  PromptResult,
  MemoryManager as RootMemoryManager,
  SessionOptions,
  ToolDefinition,
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
