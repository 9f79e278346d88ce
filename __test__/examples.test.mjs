// Every example runs to its end and shows what it is about.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const example = (name) => join(checkout, 'examples', name);

function run(args, { cwd = checkout, env = {} } = {}) {
  const variables = { ...process.env, ...env };
  for (const name of ['BASE_URL', 'MODEL', 'API_KEY', 'NODE_TEST_CONTEXT']) if (!(name in env)) delete variables[name];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd, env: variables, stdio: ['ignore', 'pipe', 'pipe'] });
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (chunk) => {
        printed[name] += chunk;
      });
    }
    child.on('close', (status) => resolve({ status, ...printed }));
  });
}

async function runs(args, expected, options) {
  const { status, stdout, stderr } = await run(args, options);
  assert.equal(status, 0, stdout + stderr);
  assert.equal(stderr, '');
  for (const part of expected) assert.match(stdout, part);
  return stdout;
}

/** What quickstart shows wherever it runs, tool by tool. */
const QUICKSTART = [
  /^model {5}I will see which files are here\.$/m,
  /^answer {4}Glob /m,
  /^answer {4}Grep \[/m,
  /^answer {4}CountWords \{"words":\d+,"lines":\d+\}$/m,
  /^usage {5}\d+ tokens in all$/m,
  /^result {4}I read \d+ lines with \d+ words, and found \d+ lines about agents\.$/m,
];

/** How each example is run, and what it must print. */
const EXAMPLES = {
  'quickstart.mjs': (file) => runs([file], [...QUICKSTART, /^answer {4}Read 1→/m]),
  'tool-package.mjs': (file) =>
    runs(
      [file],
      [/^SaveNote gave: /m, /^FindNotes failed: invalid arguments/m, /^FindNotes gave: \[/m, /^You wanted to buy two/m],
    ),
  'permissions.mjs': async (file) => {
    const stdout = await runs([file], []);
    const wrote = stdout.split('\n\n').map((part) => [part.trim().split('\n')[0], /files now: (.*)/.exec(part)[1]]);
    assert.deepEqual(wrote, [
      ['nobody to ask', 'none'],
      ['mode autoEdit', 'notes.md'],
      ['a confirmation handler', 'notes.md'],
      ['handlers combined', 'notes.md'],
    ]);
    assert.match(stdout, /asked: .*server\.key → no/);
  },
  'cancel.mjs': (file) =>
    runs(
      [file],
      [
        /the tool was told to stop and has cleaned up\n {2}terminal event: none\n {2}Hello again\./,
        /Tool execution timeout after 20ms\n {2}The tool took too long\./,
        /MODEL_STREAM_IDLE_TIMEOUT: /,
        /^ {2}one, and out$/m,
      ],
    ),
  'openai-compatible.mjs': (file) => runs([file], [/No server is configured/, /BASE_URL/, /MODEL/, /API_KEY/]),
  'testing-an-agent.test.mjs': (file) => runs(['--test', '--test-reporter=tap', file], [/^# pass 5$/m, /^# fail 0$/m]),
};

describe('examples', { concurrency: 4 }, () => {
  test('every example has its test', () => {
    assert.deepEqual(readdirSync(join(checkout, 'examples')).sort(), Object.keys(EXAMPLES).sort());
  });

  for (const [name, check] of Object.entries(EXAMPLES)) {
    test(`${name} runs`, () => check(example(name)));
  }

  test('quickstart.mjs runs in a project that has the package installed', async (t) => {
    const project = mkdtempSync(join(tmpdir(), 'quickstart-'));
    t.after(() => rmSync(project, { recursive: true, force: true }));
    mkdirSync(join(project, 'node_modules', '@blade-ai'), { recursive: true });
    symlinkSync(checkout, join(project, 'node_modules', '@blade-ai', 'agent-sdk'), 'junction');
    cpSync(example('quickstart.mjs'), join(project, 'quickstart.mjs'));
    await runs(['quickstart.mjs'], [...QUICKSTART, /^call {6}Read .*quickstart\.mjs/m], { cwd: project });
  });

  test('quickstart.mjs runs where there are no files at all', async (t) => {
    const empty = mkdtempSync(join(tmpdir(), 'quickstart-'));
    t.after(() => rmSync(empty, { recursive: true, force: true }));
    await runs([example('quickstart.mjs')], QUICKSTART, { cwd: empty });
  });

  test('openai-compatible.mjs asks the server it is told', async (t) => {
    const asked = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      asked.push([request.method, request.url, request.headers.authorization, JSON.parse(body).model]);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const frame = { choices: [{ index: 0, delta: { content: 'It is noon.' }, finish_reason: 'stop' }] };
      response.end(`data: ${JSON.stringify(frame)}\n\ndata: [DONE]\n\n`);
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const env = { BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, MODEL: 'm', API_KEY: 'k' };
    await runs([example('openai-compatible.mjs')], [/^It is noon\.$/m], { env });
    assert.deepEqual(asked, [['POST', '/v1/chat/completions', 'Bearer k', 'm']]);
  });
});
