// Opening and closing a Session with one tool, and the memory of Sessions that wait for input.

import { sides } from '../agents.mjs';
import { settledMemory, timed } from '../measure.mjs';

const WARM = 500;
const PAIRS = 1_000;
const IDLE = 2_000;

/** What any code keeps for a conversation: its tools by name, its messages, something to cancel it with. */
async function plainConversation(execute) {
  const controller = new AbortController();
  const conversation = {
    id: crypto.randomUUID(),
    tools: new Map([['noop', { name: 'noop', execute }]]),
    messages: [],
    signal: controller.signal,
  };
  return { conversation, close: async () => controller.abort() };
}

async function opener(side) {
  if (side === 'floor') return plainConversation;
  const open = await sides.sdk();
  return (execute) => open('http://127.0.0.1:9', 'none', execute);
}

async function measure({ side }) {
  const open = await opener(side);
  const pair = async () => (await open(async () => 'ok')).close();
  await timed(WARM, pair);
  const { wall, cpu } = await timed(PAIRS, pair);

  const before = await settledMemory();
  const kept = [];
  for (let i = 0; i < IDLE; i++) kept.push(await open(async () => 'ok'));
  const after = await settledMemory();
  for (const session of kept) await session.close();
  return {
    wall,
    cpu,
    rss: (after.rss - before.rss) / 1024 / IDLE,
    heap: (after.heap - before.heap) / 1024 / IDLE,
  };
}

export default {
  title: 'Session open and close',
  floor: 'a plain object with an AbortController',
  cases: [{ name: 'one tool' }],
  metrics: { wall: 'wall us', cpu: 'CPU us', rss: 'RSS kB while idle', heap: 'JS heap kB while idle' },
  sides: ['floor', 'sdk'],
  run: measure,
};
