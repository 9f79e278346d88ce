// The field cases of Glob and Grep, through a Session and by calling the built-in tools directly.

import assert from 'node:assert/strict';
import { createWriteStream, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { finished } from 'node:stream/promises';
import { describe, test } from 'node:test';
import { collectToolExecution } from '@blade-ai/agent-sdk';
import { createSession, getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { ask, folder, results } from './support/run.mjs';

const posix = process.platform !== 'win32';
const tools = new Map((await getBuiltinTools()).map((tool) => [tool.name, tool]));

/** A tree of files, and the tools over it. */
function tree(t, files = {}) {
  const root = folder(t);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  const context = { sessionId: `search-${root}`, contextSnapshot: { filesystemRoots: [root], cwd: root } };
  const call = (name, params, more) => collectToolExecution(tools.get(name).execute(params, { ...context, ...more }));
  const glob = async (pattern, more) => {
    const result = await call('Glob', { pattern, ...more });
    assert.equal(result.status, 'success', JSON.stringify(result));
    return result.metadata.matches.map((match) => match.relative_path).sort();
  };
  const grep = async (pattern, more) => {
    const result = await call('Grep', { pattern, output_mode: 'content', ...more });
    assert.equal(result.status, 'success', JSON.stringify(result));
    return result.model;
  };
  return { root, call, glob, grep };
}

const failed = (result, says) => {
  assert.equal(result.status, 'error', JSON.stringify(result.model));
  assert.match(result.error.message, says);
};

const lines = (found) => found.map((one) => one.content);

test('GG01: patterns and names that look like options are text', async (t) => {
  const { grep, root } = tree(t, {
    'f.txt': 'x -77\n--pre=sh\na->b\n-e\n',
    '--pre': 'in a file\n',
    '-rf/--files': 'deep\n',
  });
  for (const [pattern, line] of [
    ['-77', 'x -77'],
    ['--pre', '--pre=sh'],
    ['->', 'a->b'],
    ['-e', '-e'],
  ]) {
    assert.deepEqual(lines(await grep(pattern, { path: join(root, 'f.txt') })), [line]);
  }
  assert.deepEqual(lines(await grep('in a', { path: join(root, '--pre') })), ['in a file']);
  assert.deepEqual(lines(await grep('deep', { path: join(root, '-rf') })), ['deep']);
  assert.deepEqual(lines(await grep('in a', { path: '--pre' })), ['in a file']);
});

test('GG02: dot files are found, the insides of .git are not', async (t) => {
  const files = {
    '.github/workflows/ci.yml': 'runs-on: needle\n',
    '.env.example': 'A=1\n',
    '.git/config': 'needle\n',
    'a/.env': 'B=2\n',
  };
  const { root, glob, grep } = tree(t, files);
  assert.deepEqual(await glob('.github/**/*.yml'), ['.github/workflows/ci.yml']);
  assert.deepEqual(await glob('.github/workflows/*.yml'), ['.github/workflows/ci.yml']);
  assert.deepEqual(await glob('**/.env*'), ['.env.example', 'a/.env']);
  // Grep has ripgrep's rule: hidden files are searched when they are named.
  assert.deepEqual(lines(await grep('needle')), []);
  assert.deepEqual(lines(await grep('needle', { path: join(root, '.github') })), ['runs-on: needle']);
  assert.deepEqual(lines(await grep('needle', { glob: '.github/**' })), ['runs-on: needle']);
  assert.deepEqual(lines(await grep('needle', { glob: '.git/**' })), []);
  assert.ok((await glob('**/*')).every((name) => !name.startsWith('.git/')));
});

test('GG04: ignored copies are left out, nested rules and their exceptions count', async (t) => {
  const copies = Object.fromEntries([1, 2, 3, 4, 5, 6].map((n) => [`.agent/worktrees/${n}/src/a.php`, 'needle\n']));
  const { glob, grep } = tree(t, {
    '.gitignore': '.agent/worktrees/\n',
    'src/a.php': 'needle\n',
    ...copies,
    'lib/.gitignore': '*.php\n!keep.php\n',
    'lib/drop.php': 'needle\n',
    'lib/keep.php': 'needle\n',
    '.git/HEAD': 'ref: refs/heads/main\n',
  });
  assert.deepEqual(await glob('**/a.php'), ['src/a.php']);
  assert.deepEqual(await glob('**/*.php'), ['lib/keep.php', 'src/a.php']);
  assert.equal((await grep('needle')).length, 2);
});

test('GG05: a cycle of links ends, and each file is found once', {
  skip: !posix && 'needs symbolic links',
}, async (t) => {
  const { root, glob, grep } = tree(t, { 'x.txt': 'x\n', 'a/y.txt': 'x\n', 'b/z.txt': 'x\n' });
  symlinkSync('.', join(root, 'loop'));
  symlinkSync('../a', join(root, 'b', 'a'));
  symlinkSync('../b', join(root, 'a', 'b'));
  const started = performance.now();
  const names = await glob('**/*');
  const found = await grep('x');
  assert.ok(performance.now() - started < 2000);
  assert.ok(names.every((name) => !name.includes('loop/loop')));
  assert.deepEqual(
    names.filter((name) => /[xyz]\.txt$/.test(name)),
    ['a/y.txt', 'b/z.txt', 'x.txt'],
  );
  assert.equal(found.length, 3);
});

test('GG06: names full of metacharacters are reached by every tool', {
  skip: !posix && 'needs such names',
}, async (t) => {
  const { root, call, glob, grep } = tree(t, {
    'app/[id]/(grp)/{x}/page*.tsx': 'needle\n',
    'app/i/decoy.tsx': 'needle\n',
  });
  const file = join(root, 'app/[id]/(grp)/{x}/page*.tsx');
  assert.equal((await call('Read', { file_path: file })).model, 'needle\n');
  const edited = await call('Edit', { file_path: file, old_string: 'needle', new_string: 'needles' });
  assert.equal(edited.status, 'success', JSON.stringify(edited));
  assert.deepEqual(readdirSync(dirname(file)), ['page*.tsx']);
  assert.deepEqual(lines(await grep('needle', { path: join(root, 'app/[id]') })), ['needles']);
  assert.deepEqual(await glob('**/*.tsx', { path: join(root, 'app/[id]') }).then((names) => names.length), 1);
});

test('GG08: names that are no UTF-8 are listed in some form and hide nothing', {
  skip: process.platform !== 'linux' && 'needs byte names',
}, async (t) => {
  const normal = Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`n${n}.txt`, 'needle\n']));
  const { root, call, grep } = tree(t, normal);
  for (const name of [Buffer.from('a\xFFz.txt', 'latin1'), Buffer.from([0xf0, 0x28])]) {
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), name]), 'needle\n');
  }
  const result = await call('Glob', { pattern: '**/*' });
  assert.equal(result.metadata.matches.length, 12, JSON.stringify(result.model));
  const found = await grep('needle');
  assert.equal(found.length, 12);
  assert.equal(found.filter((one) => /n\d\.txt$/.test(one.file_path)).length, 10);
  assert.ok(JSON.parse(JSON.stringify(result)).status);
});

test('GG09: a bad expression, a missing path and a path that is a file are three different things', async (t) => {
  const { root, call, grep } = tree(t, { 'src/a.ts': 'const x = 1;\n' });
  failed(await call('Grep', { pattern: 'foo(' }), /regular expression.*foo\(.*unclosed group/s);
  failed(await call('Grep', { pattern: 'x', path: join(root, 'nope') }), /nope/);
  failed(await call('Glob', { pattern: '*', path: join(root, 'nope') }), /nope/);
  failed(await call('Glob', { pattern: 'a[' }), /a\[/);
  assert.deepEqual(lines(await grep('x', { path: join(root, 'src/a.ts') })), ['const x = 1;']);
  assert.deepEqual(await grep('absent'), []);
});

test('GG11: a flood of matches is bounded, says so, and comes in the same order each time', async (t) => {
  const { root, call } = tree(t);
  const line = 'some words to be matched by everything\n';
  const block = Buffer.from(line.repeat((100 << 10) / line.length));
  for (let n = 0; n < 50; n++) {
    const out = createWriteStream(join(root, `f${String(n).padStart(2, '0')}.txt`));
    out.end(block);
    await finished(out);
  }
  const started = performance.now();
  const before = process.memoryUsage.rss();
  const first = await call('Grep', { pattern: '.', output_mode: 'content' });
  const grown = process.memoryUsage.rss() - before;
  assert.ok(performance.now() - started < 5000);
  assert.ok(grown < 64 << 20, `${grown >> 20} MiB more`);
  assert.equal(first.metadata.truncated, true);
  const second = await call('Grep', { pattern: '.', output_mode: 'content' });
  assert.deepEqual(second.model.slice(0, 100), first.model.slice(0, 100));
});

test('searches stay inside the roots, links included', { skip: !posix && 'needs symbolic links' }, async (t) => {
  const outside = tree(t, { 'secret.txt': 'needle\n' });
  const { root, call, glob, grep } = tree(t, { 'in.txt': 'needle\n' });
  symlinkSync(outside.root, join(root, 'out'));
  assert.equal((await grep('needle')).length, 1);
  assert.ok((await glob('**/*.txt')).every((name) => name === 'in.txt'));
  for (const path of [outside.root, join(root, 'out'), join(root, '..')]) {
    failed(await call('Grep', { pattern: 'needle', path }), /outside|denied|not allowed|root/i);
    failed(await call('Glob', { pattern: '*', path }), /outside|denied|not allowed|root/i);
  }
});

test('an aborted search stops and says that it was interrupted', async (t) => {
  const { call } = tree(t, { 'f.txt': 'x\n' });
  const aborted = AbortSignal.abort();
  const result = await call('Grep', { pattern: 'x' }, { signal: aborted });
  assert.equal(result.status, 'error');
  assert.equal(result.error.type, 'interrupted');
});

describe('through a Session', () => {
  test('Glob, Grep and Read work together in one turn and the model reads their results', async (t) => {
    const { root } = tree(t, { 'src/a.ts': 'needle\n', 'src/b.ts': 'hay\n' });
    const provider = scriptedProvider([
      {
        toolCalls: [
          { name: 'Glob', input: { pattern: '**/*.ts' } },
          { name: 'Grep', input: { pattern: 'needle' } },
          { name: 'Grep', input: { pattern: 'needle', output_mode: 'count' } },
          { name: 'Grep', input: { pattern: '(' } },
          { name: 'Read', input: { file_path: join(root, 'src/a.ts') } },
        ],
      },
      'done',
    ]);
    const session = await createSession({
      provider,
      model: 'm',
      defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    });
    const all = results(await ask(session));
    await session.close();
    assert.deepEqual(
      all.map((one) => one.isError),
      [false, false, false, true, false],
    );
    assert.match(all[0].output, /src\/a\.ts/);
    assert.equal(all[1].output.length, 1);
    const read = provider.requests[1].messages.filter((message) => message.role === 'tool');
    assert.match(read[1].content, /a\.ts/);
    assert.equal(read[4].content, 'needle\n');
  });

  test('without roots no search is allowed, and without a working directory the path must be named', async (t) => {
    const { root } = tree(t, { 'a.txt': 'x\n' });
    for (const [filesystem, expected] of [
      [undefined, [true, true]],
      [{ roots: [] }, [true, true]],
      [{ roots: [root], cwd: root }, [false, false]],
    ]) {
      const toolCalls = [
        { name: 'Glob', input: { pattern: '*', path: root } },
        { name: 'Grep', input: { pattern: 'x', path: root } },
      ];
      const session = await createSession({
        provider: scriptedProvider([{ toolCalls }, 'x']),
        model: 'm',
        ...(filesystem && { defaultContext: { capabilities: { filesystem } } }),
      });
      const all = results(await ask(session));
      assert.deepEqual(
        all.map((one) => one.isError),
        expected,
      );
      await session.close();
    }
  });
});
