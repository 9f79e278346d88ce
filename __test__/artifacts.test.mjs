// Results too large for the conversation: where they are kept, for how long, and what happens where they cannot be.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createSession } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { quiet, run } from './support/program.mjs';
import { ask, folder, results } from './support/run.mjs';

const posix = process.platform !== 'win32';
/** More than Read gives the model in place, in one line. */
const LONG = 600_000;

/** A Session of the local profile whose first request reads a file that is too long. */
async function reading(t, options = {}, text = 'x'.repeat(LONG)) {
  const root = folder(t);
  writeFileSync(join(root, 'long.txt'), text);
  const turn = { toolCalls: [{ name: 'Read', input: { file_path: join(root, 'long.txt') } }] };
  const provider = scriptedProvider([turn, 'done', turn, 'done']);
  const filesystem = { roots: [root], cwd: root };
  const session = await createSession({
    provider,
    model: 'm',
    defaultContext: { capabilities: { filesystem } },
    ...options,
  });
  t.after(() => session.close());
  const read = async () => {
    const [result] = results(await ask(session));
    assert.equal(result.isError, false);
    return { output: result.output, path: /^\[externalized result to (.*)\]\n/.exec(result.output)?.[1] };
  };
  return { root, session, read };
}

describe('a result that is too long', () => {
  test('is kept whole in a private file outside of the working tree, until the Session closes', async (t) => {
    const { root, session, read } = await reading(t);
    const { output, path } = await read();
    assert.ok(output.length < 3_000, `${output.length} characters`);
    assert.equal(dirname(dirname(path)), tmpdir());
    const record = JSON.parse(readFileSync(path, 'utf8'));
    assert.deepEqual(Object.keys(record).sort(), ['createdAt', 'modelContent', 'sessionId', 'toolName']);
    assert.deepEqual([record.toolName, record.sessionId], ['Read', session.sessionId]);
    assert.ok(record.modelContent.includes('x'.repeat(LONG)));
    assert.ok(Math.abs(Date.parse(record.createdAt) - Date.now()) < 60_000);
    if (posix) {
      assert.equal(statSync(path).mode & 0o777, 0o600);
      assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
    }
    assert.deepEqual(readdirSync(root), ['long.txt']);
    const second = await read();
    assert.notEqual(second.path, path);
    assert.equal(dirname(second.path), dirname(path));
    await session.close();
    assert.ok(!existsSync(dirname(path)));
  });

  test('goes to a directory of its own in the one that was given', async (t) => {
    const directory = join(folder(t), 'made', 'here');
    const [one, other] = [
      await reading(t, { artifacts: { directory } }),
      await reading(t, { artifacts: { directory } }),
    ];
    assert.ok(!existsSync(directory), 'made when it is needed');
    const [first, second] = [await one.read(), await other.read()];
    assert.equal(dirname(dirname(first.path)), directory);
    assert.notEqual(dirname(first.path), dirname(second.path));
    await one.session.close();
    assert.deepEqual([existsSync(first.path), existsSync(second.path)], [false, true]);
    await other.session.close();
    assert.deepEqual(readdirSync(directory), []);
  });

  test('stays where it is to be kept', async (t) => {
    const directory = folder(t);
    const { session, read } = await reading(t, { artifacts: { directory, keep: true } });
    const { path } = await read();
    await session.close();
    assert.ok(existsSync(path));
  });

  test('is cut where nothing can be stored, and the log says so', async (t) => {
    const base = folder(t);
    writeFileSync(join(base, 'file'), '');
    mkdirSync(join(base, 'sealed'), { mode: 0o500 });
    const places = [join(base, 'file'), join(base, 'file', 'below'), join(base, 'x'.repeat(300)), '/\0'];
    if (posix && process.getuid() !== 0) places.push(join(base, 'sealed'));
    if (existsSync('/proc/self')) places.push('/proc/results');
    for (const directory of places) {
      const entries = [];
      const logger = { level: 'warn', log: (entry) => entries.push(entry) };
      const { session, read } = await reading(t, { artifacts: { directory }, logger });
      const { output, path } = await read();
      assert.equal(path, undefined);
      assert.equal(output.length, 500_000);
      const removed = Number(/\n\[(\d+) characters removed\]$/.exec(output)?.[1]);
      assert.ok(removed > 100_000, output.slice(-60));
      await session.close();
      assert.equal(entries[0].message, 'a long result could not be stored and is cut');
      assert.equal(entries[0].args[0].tool, 'Read');
    }
    assert.deepEqual(readdirSync(base).sort(), ['file', 'sealed']);
  });

  test('that does not fit the disk leaves no half of itself', { skip: !existsSync('/bin/bash') }, async (t) => {
    const base = folder(t);
    const root = fileURLToPath(new URL('..', import.meta.url));
    writeFileSync(join(base, 'long.txt'), 'x'.repeat(LONG));
    // Files of at most 100 KiB, and a write beyond that is an error rather than the end of the process.
    const program = `
      import { readdirSync } from 'node:fs';
      import { createSession } from '@blade-ai/agent-sdk/advanced';
      import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
      const [base] = process.argv.slice(1);
      const turn = { toolCalls: [{ name: 'Read', input: { file_path: base + '/long.txt' } }] };
      const filesystem = { roots: [base], cwd: base };
      const session = await createSession({ provider: scriptedProvider([turn, 'done']), model: 'm',
        defaultContext: { capabilities: { filesystem } }, artifacts: { directory: base + '/results' } });
      await session.send('go');
      for await (const { type, output } of session.stream()) {
        if (type === 'tool_result') console.log(output.length, output.slice(-20).includes('removed'));
      }
      for (const made of readdirSync(base + '/results')) console.log(readdirSync(base + '/results/' + made).length);
      await session.close();
      console.log(readdirSync(base + '/results').length);`;
    const limited = `trap '' XFSZ; ulimit -f 100; exec "$0" --input-type=module --eval "$1" "$2"`;
    const args = ['-c', limited, process.execPath, program, base];
    const said = execFileSync('/bin/bash', args, { cwd: root, encoding: 'utf8' });
    assert.deepEqual(said.trim().split('\n'), ['500000 true', '0', '0']);
  });

  const opening = (directory) => `
    const { createSession: local } = await import('@blade-ai/agent-sdk/advanced');
    const { existsSync, mkdtempSync, realpathSync, rmSync, writeFileSync } = await import('node:fs');
    const { tmpdir } = await import('node:os');
    const base = realpathSync(mkdtempSync(tmpdir() + '/artifacts-'));
    writeFileSync(base + '/long.txt', 'x'.repeat(${LONG}));
    let path;
    const session = async () => {
      const turn = { toolCalls: [{ name: 'Read', input: { file_path: base + '/long.txt' } }] };
      const filesystem = { roots: [base], cwd: base };
      const s = await local({ provider: scriptedProvider([turn, 'done']), model: 'm',
        defaultContext: { capabilities: { filesystem } }, ${directory} });
      await s.send('go');
      for await (const { type, output } of s.stream()) {
        if (type === 'tool_result') path = /externalized result to (.*)\\]/.exec(output)[1];
      }
      return s;
    };`;

  test('goes with a Session that is collected', async () => {
    const program = `${opening('')}
      await (async () => { await session(); })();
      say('stored ' + existsSync(path));
      for (let n = 0; n < 50 && existsSync(path); n++) { gc(); await macrotask(); }
      say('gone ' + !existsSync(path));
      rmSync(base, { recursive: true });`;
    assert.deepEqual(await run(program, { flags: ['--expose-gc'] }), quiet('stored true', 'gone true'));
  });

  test('goes with a process that ends without closing its Session', async () => {
    const program = `${opening('')} globalThis.kept = await session(); rmSync(base, { recursive: true }); say(path);`;
    const { lines, ...ended } = await run(program);
    assert.deepEqual(ended, { code: 0, signal: null, errors: '', late: false });
    assert.ok(!existsSync(dirname(lines[0])), lines[0]);
  });
});

test('options that cannot be kept are named', async () => {
  const create = (artifacts) => createSession({ provider: scriptedProvider(['a']), model: 'm', artifacts });
  for (const [artifacts, message] of [
    [{ directory: 'results' }, /^artifacts\.directory must be an absolute path, got "results"/],
    [{ directory: '' }, /^artifacts\.directory must be an absolute path/],
    [{ directory: 1 }, /^artifacts: invalid type/],
    [{ keep: 'yes' }, /^artifacts: .*boolean/],
    [{ dir: '/x' }, /^artifacts: unknown field `dir`/],
    ['/x', /^artifacts: invalid type/],
  ]) {
    await assert.rejects(create(artifacts), { code: 'CONFIG_ERROR', message }, JSON.stringify(artifacts));
  }
});
