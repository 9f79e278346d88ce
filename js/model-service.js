// `wrapModelService`: middleware around a model service, in JavaScript alone.

import { ConfigError } from './errors.js';
import { modelListOf } from './middleware.js';
import { aroundGenerator, aroundPromise, requestOf } from './model-middleware.js';

const METHODS = ['chat', 'sideQuery', 'streamChat', 'getConfig', 'updateConfig'];

export function wrapModelService(service, list) {
  const missing = METHODS.find((name) => typeof service?.[name] !== 'function');
  if (missing !== undefined)
    throw new ConfigError(`a model service needs ${METHODS.join(', ')}; ${missing} is missing`);
  const layers = modelListOf(list, 'the list of model middleware');

  const chat = aroundPromise(layers, 'wrapChat', ({ messages, tools, signal }) =>
    service.chat(messages, tools, signal),
  );
  const sideQuery = aroundPromise(layers, 'wrapSideQuery', ({ messages, signal, options }) =>
    service.sideQuery(messages, signal, options),
  );
  const streamChat = aroundGenerator(layers, 'wrapStream', ({ messages, tools, signal }) =>
    service.streamChat(messages, tools, signal),
  );
  const request = (operation, rest) => requestOf({ operation, model: service.getConfig().model, ...rest });

  const wrapped = {
    async chat(messages, tools, signal) {
      return await chat(request('chat', { messages, tools, signal }));
    },
    async sideQuery(messages, signal, options) {
      return await sideQuery(request('sideQuery', { messages, options, signal }));
    },
    async *streamChat(messages, tools, signal) {
      return yield* streamChat(request('streamChat', { messages, tools, signal }));
    },
    getConfig: () => service.getConfig(),
    updateConfig: (change) => service.updateConfig(change),
  };
  if (typeof service.chatWithRetryEvents === 'function') {
    const withEvents = aroundGenerator(layers, 'wrapChatWithRetryEvents', ({ messages, tools, signal }) =>
      service.chatWithRetryEvents(messages, tools, signal),
    );
    wrapped.chatWithRetryEvents = async function* chatWithRetryEvents(messages, tools, signal) {
      return yield* withEvents(request('chatWithRetryEvents', { messages, tools, signal }));
    };
  }
  return wrapped;
}
