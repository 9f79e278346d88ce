// Every JavaScript block of the documents for users runs and prints what the comment above it says.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const DOCUMENTS = ['README.md', 'docs/testing.md'];

/** The blocks with the comments that say how they run: `<!-- runs {"script":[…],"prints":"…"} -->`. */
function blocksOf(document) {
  const text = readFileSync(join(checkout, document), 'utf8');
  const block = /^(?:<!-- runs ([^\n]+) -->\n)?```(?:js|ts|javascript|typescript)\n(.*?)^```$/gms;
  return [...text.matchAll(block)].map(({ index, 1: how, 2: code }) => ({
    how: how && JSON.parse(how),
    code,
    place: `${document}, below "${[...text.slice(0, index).matchAll(/^#+ (.+)$/gm)].at(-1)?.[1]}"`,
  }));
}

const blocks = DOCUMENTS.flatMap(blocksOf);

/** `provider` and `model`, which the blocks take for granted, as a script. */
const given = (script) => `
import { scriptedProvider as script__ } from '@blade-ai/agent-sdk/testing';
const provider = script__(${JSON.stringify(script)});
const model = 'scripted';
`;

/** The block as a program. A key of the environment becomes the script, so that it reaches no provider. */
function programOf({ how, code }) {
  if (how.script === undefined) return code;
  return given(how.script) + code.replace(/apiKey: process\.env\.OPENAI_API_KEY/, 'provider');
}

/** A server of chat completions that streams one text. */
async function modelServer(t, text) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const choice = (delta, finish_reason = null) => ({ choices: [{ index: 0, delta, finish_reason }] });
    for (const frame of [choice({ content: text }), choice({}, 'stop')]) {
      response.write(`data: ${JSON.stringify(frame)}\n\n`);
    }
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/v1`;
}

function run(program, env) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program], { cwd: dirname(program), env: { ...process.env, ...env } });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.on('close', (status) => resolve({ status, output }));
  });
}

describe('documents', { concurrency: 4 }, () => {
  let project;

  before(() => {
    // A project as a user has it: the package and typebox in node_modules.
    project = mkdtempSync(join(tmpdir(), 'snippets-'));
    mkdirSync(join(project, 'node_modules', '@blade-ai'), { recursive: true });
    symlinkSync(checkout, join(project, 'node_modules', '@blade-ai', 'agent-sdk'), 'junction');
    symlinkSync(join(checkout, 'node_modules', 'typebox'), join(project, 'node_modules', 'typebox'), 'junction');
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  test('every block says how it runs', () => {
    assert.ok(blocks.length >= 10, `${blocks.length} blocks found`);
    for (const { how, place } of blocks) assert.ok(how?.prints, `the block in ${place} has no runs comment`);
  });

  for (const [at, block] of blocks.entries()) {
    test(`the block in ${block.place} runs`, async (t) => {
      const program = join(project, `block-${at}.js`);
      writeFileSync(program, programOf(block));
      const env = block.how.server && { BASE_URL: await modelServer(t, block.how.server[0]), API_KEY: 'test' };
      const { status, output } = await run(program, env);
      assert.equal(status, 0, output);
      assert.ok(output.includes(block.how.prints), `expected ${JSON.stringify(block.how.prints)} in:\n${output}`);
    });
  }
});
