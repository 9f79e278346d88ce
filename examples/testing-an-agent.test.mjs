// Testing an agent without a network: `node --test examples/testing-an-agent.test.mjs`. docs/testing.md explains all of
// it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAgent, defineTool, ToolKind } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import Type from 'typebox';

// ---- the agent under test: an application would import it

const stock = new Map([['tea', 3]]);

const takeFromStock = defineTool({
  name: 'TakeFromStock',
  description: 'Take items out of the stock',
  parameters: Type.Object({ item: Type.String(), count: Type.Integer({ minimum: 1 }) }),
  kind: ToolKind.Write,
  async execute({ item, count }) {
    const left = (stock.get(item) ?? 0) - count;
    if (left < 0) throw new Error(`only ${stock.get(item) ?? 0} of ${item} are left`);
    stock.set(item, left);
    return { item, left };
  },
});

const shop = (provider) =>
  createAgent({
    provider,
    model: 'scripted',
    tools: [takeFromStock],
    systemPrompt: 'You run a shop.',
    advanced: { permission: 'accept-edits' },
  });

/** Sends one message and returns the answer text. */
async function answer(provider, message) {
  const agent = await shop(provider);
  try {
    return await (await agent.send(message)).text();
  } finally {
    await agent.close();
  }
}

/** What the model was told in its last request. */
const lastMessage = (provider) => provider.requests.at(-1).messages.at(-1);

// ---- the tests

test('the model is told what the tool did', async () => {
  const provider = scriptedProvider([
    { toolCalls: [{ name: 'TakeFromStock', input: { item: 'tea', count: 2 } }] },
    'One packet of tea is left.',
  ]);
  assert.equal(await answer(provider, 'Two packets of tea, please.'), 'One packet of tea is left.');

  assert.equal(stock.get('tea'), 1);
  assert.equal(lastMessage(provider).content, '{"item":"tea","left":1}');
  assert.equal(provider.remaining, 0, 'the agent made all the calls that were scripted');
});

test('the request carries the instructions and the schema of the tool', async () => {
  const provider = scriptedProvider(['Welcome.']);
  await answer(provider, 'Hello');

  const [request] = provider.requests;
  assert.deepEqual(
    request.messages.map(({ role, content }) => [role, content]),
    [
      ['system', 'You run a shop.'],
      ['user', 'Hello'],
    ],
  );
  assert.deepEqual(request.tools[0].parameters.required, ['item', 'count']);
});

test('arguments that do not fit the schema never reach the tool, and the model can correct itself', async () => {
  const provider = scriptedProvider([
    { toolCalls: [{ name: 'TakeFromStock', input: { item: 'tea', count: 0 } }] },
    (request) => {
      assert.match(request.messages.at(-1).content, /count/);
      return 'How many do you want?';
    },
  ]);
  assert.equal(await answer(provider, 'Some tea'), 'How many do you want?');
});

test('a busy provider is asked again', async () => {
  const provider = scriptedProvider([{ fault: { kind: 'http', status: 503 } }, 'Here I am.'], {
    retry: { initialDelayMs: 0 },
  });
  assert.equal(await answer(provider, 'Hello'), 'Here I am.');
  assert.equal(provider.requests.length, 2);
});

test('an answer that breaks off is an error with a code, and what arrived is not lost', async () => {
  const agent = await shop(scriptedProvider([{ text: ['Well, ', 'I'], fault: { kind: 'disconnect', after: 1 } }]));
  const seen = [];
  const response = await agent.send('Hello');
  response.on('content', ({ delta }) => {
    seen.push(delta);
  });
  await assert.rejects(response.text(), { name: 'SdkError', code: 'MODEL_STREAM_ERROR' });
  assert.deepEqual(seen, ['Well, ']);
  await agent.close();
});
