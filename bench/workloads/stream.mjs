// Text deltas at full speed, from the socket to the consumer's loop.

import { sides } from '../agents.mjs';
import { expect, timed } from '../measure.mjs';

const SIZE = 16;

async function measure({ side, url, count, write }) {
  const open = await sides[side]();
  let units = 0;
  const stream = async (deltas) => {
    const agent = await open(url, `deltas?count=${deltas}&size=${SIZE}&write=${write}`);
    units = 0;
    await agent.run('go', (delta) => {
      units += delta.length;
    });
    await agent.close();
    expect('characters', units, deltas * SIZE);
  };
  await stream(count / 10);
  // The server renders a script at its first use.
  await fetch(`${url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: `deltas?count=${count}&size=${SIZE}&write=${write}`, messages: [] }),
  }).then((response) => response.arrayBuffer());
  const { wall, cpu } = await timed(1, () => stream(count));
  return { wall: wall / count, cpu: cpu / count };
}

export default {
  title: 'streamed deltas',
  floor: 'fetch, a reader of server-sent events and JSON.parse',
  model: true,
  cases: [
    { name: '20,000, joined into 16 kB writes', count: 20_000, write: 16_384 },
    { name: '20,000, a write each', count: 20_000, write: 1 },
  ],
  metrics: { wall: 'wall us a delta', cpu: 'CPU us a delta' },
  sides: ['floor', 'sdk'],
  run: measure,
};
