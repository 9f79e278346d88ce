// One turn that calls 64 tools, all of them at once.

import { setImmediate as nextTick } from 'node:timers/promises';
import { sides } from '../agents.mjs';
import { expect, median, timed } from '../measure.mjs';

const CALLS = 64;
const RUNS = 20;

async function measure({ side, url }) {
  const open = await sides[side]();
  let running = 0;
  let most = 0;
  const execute = async () => {
    most = Math.max(most, ++running);
    await nextTick();
    running--;
    return 'ok';
  };
  const turn = async () => {
    const options = { toolConcurrency: { readonly: CALLS } };
    const agent = await open(url, `calls?turns=1&each=${CALLS}`, execute, options);
    expect('answer', await agent.run('go'), 'done');
    await agent.close();
  };
  await timed(5, turn);
  const runs = [];
  for (let i = 0; i < RUNS; i++) runs.push(await timed(1, turn));
  expect('calls at once', most, CALLS);
  return { wall: median(runs.map((run) => run.wall)) / 1000, cpu: median(runs.map((run) => run.cpu)) / 1000 };
}

export default {
  title: 'parallel tools',
  floor: 'Promise.all over the tools',
  model: true,
  cases: [{ name: `${CALLS} at once, toolConcurrency raised` }],
  metrics: { wall: 'wall ms', cpu: 'CPU ms' },
  sides: ['floor', 'sdk'],
  run: measure,
};
