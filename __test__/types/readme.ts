// Programs as a reader of the documentation would write them.

import { createAgent, createSession, defineTool, SdkError, ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import { createSession as createLocalSession } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import Type from 'typebox';

const add = defineTool({
  name: 'Add',
  description: 'Add two numbers',
  parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
  kind: ToolKind.ReadOnly,
  sideEffect: ToolSideEffect.PURE,
  async execute({ a, b }) {
    return a + b;
  },
});

export async function quickstart(): Promise<void> {
  const agent = await createAgent({ model: 'gpt-5', apiKey: 'sk-…', tools: [add] });
  const response = await agent.send('What is 17 + 25?');
  console.log(await response.text());
  await agent.close();
}

export async function streaming(root: string): Promise<string> {
  await using session = await createLocalSession({
    provider: { type: 'openai-compatible', baseUrl: 'http://127.0.0.1:8080/v1', apiKey: 'k' },
    model: 'local-model',
    tools: [add],
    permissionMode: 'autoEdit',
    confirmationHandler: {
      async requestConfirmation({ message }) {
        return { approved: message.length > 0 };
      },
    },
    defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
  });
  let answer = '';
  await session.send('List the TODOs');
  for await (const event of session.stream()) {
    if (event.type === 'content') answer += event.delta;
    else if (event.type === 'tool_result') console.log(event.name, event.isError ? 'failed' : 'done', event.output);
    else if (event.type === 'error') throw new SdkError(event.message, event.code ? { code: event.code } : {});
  }
  return answer;
}

export async function offlineTest(): Promise<boolean> {
  const provider = scriptedProvider([{ toolCalls: [{ name: 'Add', input: { a: 17, b: 25 } }] }, 'The sum is 42.']);
  const session = await createSession({ provider, model: 'scripted', tools: [add], permissionMode: 'yolo' });
  try {
    await session.send('What is 17 + 25?');
    for await (const event of session.stream()) if (event.type === 'usage') console.log(event.usage.totalTokens);
    return provider.remaining === 0 && provider.requests[1]?.messages.at(-1)?.content === '42';
  } finally {
    await session.close();
  }
}
