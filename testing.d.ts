/**
 * Public types of `@blade-ai/agent-sdk/testing`: a model that answers from a script, offline and at once.
 *
 * ```ts
 * import { createSession } from '@blade-ai/agent-sdk';
 * import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
 *
 * const provider = scriptedProvider([
 *   { toolCalls: [{ name: 'Add', input: { a: 17, b: 25 } }] },
 *   'The sum is 42.',
 * ]);
 * const session = await createSession({ provider, model: 'scripted', tools: [add] });
 * // … send and stream …
 * assert.equal(provider.remaining, 0);
 * assert.equal(provider.requests[1]?.messages.at(-1)?.content, '42');
 * ```
 */

import type {
  JsonObject,
  ModelMessage,
  ModelProviderOptions,
  ModelToolDefinition,
  OutputFormat,
  ProviderConnectionConfig,
} from './index.js';

/**
 * A provider that plays turns: one for each call of the model, in order, or whatever a function answers.
 *
 * Every request is checked as a strict provider would: each tool result answers a call, each call has its result, ids
 * are unique. A request that breaks a rule fails with code `INVALID_MODEL_REQUEST`; so does one that finds no turn
 * left.
 */
export declare function scriptedProvider(
  turns: readonly (ScriptedTurn | ScriptedTurnFunction)[] | ScriptedTurnFunction,
  options?: ScriptedProviderOptions,
): ScriptedProvider;

/** Settings of the connection that a script can be tested with. */
export interface ScriptedProviderOptions
  extends Pick<ProviderConnectionConfig, 'id' | 'requestTimeoutMs' | 'streamIdleTimeoutMs' | 'retry'> {}

/** A scripted connection, for `SessionOptions.provider`. May serve several Sessions, which then share its turns. */
export interface ScriptedProvider extends ProviderConnectionConfig {
  readonly type: 'scripted';
  /** All requests so far, oldest first; the refused ones too. */
  readonly requests: readonly ScriptedRequest[];
  /** Number of turns that were not played yet; `Infinity` if a function answers. */
  readonly remaining: number;
}

/** A request as the model was sent it. */
export interface ScriptedRequest {
  /** Model name. */
  readonly model: string;
  /** The conversation, a leading system message included. */
  readonly messages: readonly ModelMessage[];
  /** The declared tools. */
  readonly tools: readonly ModelToolDefinition[];
  /** Sampling temperature. */
  readonly temperature?: number;
  /** Limit of output tokens. */
  readonly maxOutputTokens?: number;
  /** The format of the answer. */
  readonly outputFormat?: OutputFormat;
  /** Options keyed by provider type. */
  readonly providerOptions?: ModelProviderOptions;
}

/** One answer of the model. A string is its text. */
export type ScriptedTurn = string | ScriptedAnswer;

/** One answer of the model in parts: thinking, then text, then tool calls. */
export interface ScriptedAnswer {
  /** Answer text; a list gives one delta for each entry. Default: none. */
  text?: string | readonly string[];
  /** Reasoning; a list gives one delta for each entry. Default: none. */
  thinking?: string | readonly string[];
  /** Tool calls, in order. Default: none. */
  toolCalls?: readonly ScriptedToolCall[];
  /** Token counts; `false` reports none. Default: counts estimated from the texts. */
  usage?: { inputTokens: number; outputTokens: number } | false;
  /** Why the model stopped. Default `'tool_calls'` with tool calls, else `'stop'`. */
  finishReason?: 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'refusal' | (string & {});
  /** Wait before the first delta, in milliseconds. Default 0. */
  delayMs?: number;
  /** What goes wrong. Default: nothing. */
  fault?: ScriptedFault;
}

/** A tool call of the model. */
export interface ScriptedToolCall {
  /** Id of the call. Default: a fresh one. */
  id?: string;
  /** Name of the tool. */
  name: string;
  /** Arguments; a string is sent as it is, so that it can be malformed. Default `{}`. */
  input?: JsonObject | string;
}

/**
 * Something that goes wrong with an answer. `after`: so many deltas of the turn's thinking and text arrive before; its
 * tool calls and usage do not. Default 0.
 */
export type ScriptedFault =
  /**
   * An HTTP error, `status` 400 to 599, in place of the answer. Retried where a real one would be; each attempt plays a
   * turn.
   */
  | { kind: 'http'; status: number; message?: string; retryAfterMs?: number }
  /** The connection breaks. */
  | { kind: 'disconnect'; after?: number }
  /** The answer is not of the provider's form. */
  | { kind: 'malformed'; after?: number }
  /** Nothing more comes, until the request is cancelled or `streamIdleTimeoutMs` has passed. Not retried. */
  | { kind: 'hang'; after?: number }
  /** The stream carries an error of the provider. */
  | { kind: 'error'; message: string; after?: number };

/**
 * Answers a request.
 *
 * **Contract**
 * - Called once for each model call, and awaited by it.
 * - May throw or reject: the model call fails with code `MODEL_STREAM_ERROR` and the error as cause.
 * - May never settle: the model call waits until the request is cancelled or the shorter of `requestTimeoutMs` and
 *   `streamIdleTimeoutMs` has passed.
 */
export type ScriptedTurnFunction = (request: ScriptedRequest) => ScriptedTurn | Promise<ScriptedTurn>;
