// A fresh process that imports the package, against one that runs an empty script.

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from '../measure.mjs';

const REPORT = 'console.log(JSON.stringify([process.cpuUsage(), process.resourceUsage().maxRSS]))';

const scripts = {
  floor: '',
  sdk: "await import('@blade-ai/agent-sdk');",
};

function measure(script) {
  // The package is found by its own name from here.
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  const start = performance.now();
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', `${script} ${REPORT}`], { cwd });
  const wall = performance.now() - start;
  expect('exit status', status, 0);
  const [{ user, system }, maxRss] = JSON.parse(stdout);
  return { wall, cpu: (user + system) / 1000, rss: maxRss / 1024 };
}

export default {
  title: 'import in a fresh process',
  floor: 'a process with an empty script',
  cases: [{ name: 'import' }],
  metrics: { wall: 'wall ms', cpu: 'CPU ms', rss: 'peak RSS MB' },
  sides: ['floor', 'sdk'],
  run: ({ side }) => measure(scripts[side]),
};
