// The same conversation through a Session of the package.

import { createSession, defineTool } from '@blade-ai/agent-sdk';

const noop = (execute) =>
  defineTool({
    name: 'noop',
    description: 'Does nothing',
    kind: 'readonly',
    sideEffect: 'pure',
    parameters: { type: 'object', properties: { i: { type: 'integer' } }, required: ['i'] },
    execute,
  });

export async function sdkAgent(url, model, execute, options) {
  const session = await createSession({
    provider: { type: 'openai-compatible', apiKey: 'none', baseUrl: url },
    model,
    maxTurns: 100_000,
    permissionMode: 'yolo',
    tools: execute ? [noop(execute)] : [],
    ...options,
  });

  async function run(message, onDelta) {
    await session.send(message);
    let result;
    for await (const event of session.stream()) {
      if (event.type === 'content') onDelta?.(event.delta);
      else if (event.type === 'error') throw new Error(event.message);
      else if (event.type === 'result') result = event.content;
    }
    return result;
  }

  return { run, close: () => session.close() };
}
