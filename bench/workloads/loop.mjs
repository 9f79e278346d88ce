// Turns with one tool call each: what a turn costs, and whether it costs more in a long conversation.

import { sides } from '../agents.mjs';
import { expect, timed } from '../measure.mjs';

async function measure({ side, url, turns }) {
  const open = await sides[side]();
  let calls = 0;
  const loop = async (length) => {
    const agent = await open(url, `calls?turns=${length}`, async () => {
      calls++;
      return 'ok';
    });
    calls = 0;
    expect('answer', await agent.run('go'), 'done');
    expect('calls', calls, length);
    await agent.close();
  };
  await loop(20);
  const { wall, cpu } = await timed(1, () => loop(turns));
  return { wall: wall / turns, cpu: cpu / turns };
}

export default {
  title: 'tool loop',
  floor: 'the same loop over fetch, tools called directly',
  model: true,
  cases: [50, 200, 400].map((turns) => ({ name: `${turns} turns`, turns })),
  metrics: { wall: 'wall us a turn', cpu: 'CPU us a turn' },
  /** Cost of a turn in the longest conversation against the shortest, for each side. */
  growth: { from: '50 turns', to: '400 turns', metric: 'cpu' },
  sides: ['floor', 'sdk'],
  run: measure,
};
