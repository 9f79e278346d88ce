// Small programs in processes of their own.

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** What every program begins with. A rejection nobody handles ends it with code 99. */
const PRELUDE = `
  import { createAgent, createSession, defineTool, prompt } from '@blade-ai/agent-sdk';
  import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
  process.on('unhandledRejection', (reason) => {
    console.log('unhandled rejection', reason);
    process.exit(99);
  });
  const say = (text) => console.log(text);
  const macrotask = () => new Promise((resolve) => setImmediate(resolve));
  const forever = () => new Promise(() => {});
  const calls = (...names) => ({ toolCalls: names.map((name) => ({ name })) });
  const tool = (name, execute, more) =>
    defineTool({ name, description: name, parameters: { type: 'object' }, execute, ...more });
  const generator = (name, execute) => ({ ...tool(name, async () => null), execute });
  const open = (turns, options) =>
    createSession({ provider: scriptedProvider(turns), model: 'm', permissionMode: 'yolo', ...options });
`;

/** How long a program may take before it counts as one that never ends. Generous: only a failure waits for it. */
const NEVER_MS = 30_000;

/** Runs a program and says how it ended: `{ code, signal, lines, errors, late }`. */
export function run(source, { prelude = PRELUDE, flags = [], node = process.execPath, cwd = root, env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const args = [...flags, '--input-type=module', '--eval', prelude + source];
    const child = spawn(node, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '';
    let errors = '';
    let late = false;
    child.stdout.setEncoding('utf8').on('data', (text) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text) => {
      errors += text;
    });
    const timer = setTimeout(() => {
      late = true;
      child.kill('SIGKILL');
    }, NEVER_MS);
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, lines: out.split('\n').filter(Boolean), errors, late });
    });
  });
}

/** How a program ended that did what it should: by itself, quietly. */
export const quiet = (...lines) => ({ code: 0, signal: null, lines, errors: '', late: false });
