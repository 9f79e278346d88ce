// One request with one tool call: message, model, tool, model, result. What a user waits for besides the model.

import { sides } from '../agents.mjs';
import { expect, quantile, timed } from '../measure.mjs';

const REQUESTS = 200;

async function measure({ side, url }) {
  const open = await sides[side]();
  const request = async () => {
    const agent = await open(url, 'calls?turns=1', async () => 'ok');
    expect('answer', await agent.run('go'), 'done');
    await agent.close();
  };
  await timed(50, request);
  const runs = [];
  for (let i = 0; i < REQUESTS; i++) runs.push(await timed(1, request));
  const walls = runs.map((run) => run.wall);
  return {
    p50: quantile(walls, 0.5),
    p95: quantile(walls, 0.95),
    cpu: runs.reduce((sum, run) => sum + run.cpu, 0) / REQUESTS,
  };
}

export default {
  title: 'tool round trip',
  floor: 'two fetches and a function call',
  model: true,
  cases: [{ name: 'one request, one call' }],
  metrics: { p50: 'wall us, p50', p95: 'wall us, p95', cpu: 'CPU us' },
  sides: ['floor', 'sdk'],
  run: measure,
};
