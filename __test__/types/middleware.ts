// What layers around models and tools are called with and what they answer.

import {
  createSession,
  definePlugin,
  type AgentMiddlewareConfig,
  type ModelMiddleware,
  type ModelService,
  type ModelServiceConfig,
  type ModelStreamChunk,
  type ModelUsage,
  type ToolMiddleware,
  wrapModelService,
} from '@blade-ai/agent-sdk';
import { typeOf } from './expect.js';

const layer: ModelMiddleware = {
  async wrapChat(request, next) {
    typeOf(request.operation).is<'chat'>();
    const response = await next({ ...request, messages: [...request.messages, { role: 'user', content: 'x' }] });
    return { ...response, content: response.content.trim() };
  },
  async wrapSideQuery(request, next) {
    return await next({ ...request, options: { ...request.options, querySource: 'summary', temperature: 0 } });
  },
  async *wrapStream(request, next) {
    request.signal?.throwIfAborted();
    for await (const chunk of next({ ...request, tools: request.tools?.slice(0, 3) })) {
      typeOf(chunk.usage).is<ModelUsage | undefined>();
      yield chunk;
    }
    yield { toolCalls: [{ index: 0, function: { arguments: '{}' } }], finishReason: 'stop' };
    yield { toolCalls: [{ id: 'c', type: 'function', function: { name: 'T', arguments: '{}' } }] };
  },
  async *wrapChatWithRetryEvents(_request, next) {
    const response = yield* next();
    return response;
  },
};

// @ts-expect-error an operation stays what it is
const other: ModelMiddleware = { wrapChat: (request, next) => next({ ...request, operation: 'streamChat' }) };
void other;
const writes: ModelMiddleware = {
  wrapChat(request, next) {
    // @ts-expect-error requests are not written to
    request.messages = [];
    return next(request);
  },
};
void writes;
// @ts-expect-error a stream is an async generator
const whole: ModelMiddleware = { wrapStream: async () => ({ content: 'x' }) };
void whole;
// @ts-expect-error there is no such operation
const unknown: ModelMiddleware = { wrapEmbed: () => {} };
void unknown;
// @ts-expect-error text is text
const chunk: ModelStreamChunk = { content: 5 };
void chunk;

const tool: ToolMiddleware = async function* (request, next) {
  typeOf(request.toolName).is<string>();
  return yield* next({ ...request, input: { ...request.input, checked: true } });
};
const config: AgentMiddlewareConfig = { model: [layer], tool: [tool] };
definePlugin({ name: 'p', middleware: config });
const session = await createSession({ provider: { type: 'openai' }, model: 'm', middleware: config });
await session.close();
// @ts-expect-error there is no such list
definePlugin({ name: 'p', middleware: { models: [layer] } });

declare const service: ModelService;
const wrapped = wrapModelService(service, [layer]);
typeOf(wrapped).is<ModelService>();
typeOf(wrapped.getConfig()).is<ModelServiceConfig>();
wrapped.updateConfig({ model: 'other', retry: { maxRetries: 1 } });
for await (const { content } of wrapped.streamChat([{ role: 'user', content: 'hi' }])) {
  typeOf(content).is<string | undefined>();
}
for await (const { attempt } of wrapped.chatWithRetryEvents?.([]) ?? []) typeOf(attempt).is<number>();
// @ts-expect-error a list of layers
wrapModelService(service, layer);
