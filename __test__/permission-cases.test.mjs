// Ways around permissions that other tools fell for, each named by its case.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createRuleBasedPermissionHandler } from '@blade-ai/agent-sdk';
import { anything, tool, turn } from './support/pipeline.mjs';
import { folder } from './support/run.mjs';

/** A Session of the local profile that works in `root`. */
const local = (root, more) => ({
  profile: 'local',
  permissionMode: 'yolo',
  defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
  ...more,
});

/** A custom tool that tells which path it was given. */
const peek = (kind = 'readonly') =>
  tool('Peek', async (input) => ({ saw: input }), { kind, parameters: anything, sideEffect: 'pure' });

/** Files below a directory, with their content. */
const listing = (directory) =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.includes('.git'))
    .map((entry) => `${entry.name}: ${readFileSync(join(entry.parentPath, entry.name), 'utf8')}`)
    .sort();

describe('PM01 a sibling whose name begins like the root is outside', () => {
  const siblings = ['project-evil', 'project.bak'];
  const world = (t) => {
    const base = folder(t);
    for (const name of ['project', ...siblings]) {
      mkdirSync(join(base, name));
      writeFileSync(join(base, name, 'x'), `secret of ${name}`);
    }
    return base;
  };

  test('for Read, Write, Edit, Glob, Grep and the cwd of Bash', async (t) => {
    const base = world(t);
    const root = join(base, 'project');
    const before = listing(base);
    const ways = siblings.flatMap((name) => [join(base, name), `${root}/../${name}`]);
    const list = ways.flatMap((way) => [
      { name: 'Read', input: { file_path: `${way}/x` } },
      { name: 'Write', input: { file_path: `${way}/x`, content: 'mine' } },
      { name: 'Write', input: { file_path: `${way}/new`, content: 'mine' } },
      { name: 'Edit', input: { file_path: `${way}/x`, old_string: 'secret', new_string: 'mine' } },
      { name: 'Glob', input: { pattern: '*', path: way } },
      { name: 'Grep', input: { pattern: 'secret', path: way } },
      { name: 'Bash', input: { command: 'cat x; touch new', cwd: way } },
    ]);
    for (const name of siblings) {
      list.push({ name: 'Glob', input: { pattern: '*', path: `../${name}` } });
      list.push({ name: 'Glob', input: { pattern: `${join(base, name)}/*` } });
      list.push({ name: 'Grep', input: { pattern: 'secret', path: `../${name}` } });
      list.push({ name: 'Bash', input: { command: 'touch new', cwd: `../${name}` } });
    }
    const { results: all } = await turn(
      t,
      list,
      local(root, { permissionHandler: async () => ({ behavior: 'allow' }) }),
    );
    assert.equal(all.length, list.length);
    for (const [at, result] of all.entries()) {
      assert.equal(result.isError, true, JSON.stringify(list[at]));
      assert.match(result.output, /outside authorized roots/, JSON.stringify(list[at]));
    }
    assert.deepEqual(listing(base), before);
  });

  test('for a rule about a directory too', async (t) => {
    const base = world(t);
    const allow = [`Peek(${base}/project:*)`, `Peek(${base}/project/**)`];
    const paths = ['project/x', 'project-evil/x', 'project.bak/x'];
    const { results: all } = await turn(
      t,
      paths.map((path) => ({ name: 'Peek', input: { path: join(base, path) } })),
      { tools: [peek('execute')], permissions: { allow } },
    );
    assert.deepEqual(
      all.map((result) => result.isError),
      [false, true, true],
    );
  });
});

describe('PM02 an alias of a denied file is denied', () => {
  const world = (t) => {
    const root = folder(t);
    mkdirSync(join(root, 'a'));
    writeFileSync(join(root, 'sensitive.json'), 'secret');
    writeFileSync(join(root, 'public.json'), 'public');
    symlinkSync('sensitive.json', join(root, 'pub.json'));
    symlinkSync('pub.json', join(root, 'twice.json'));
    symlinkSync('.', join(root, 'here'));
    return root;
  };
  const spellings = (root) => [
    `${root}/sensitive.json`,
    `${root}/pub.json`,
    `${root}/twice.json`,
    `${root}/here/pub.json`,
    `${root}/a/../sensitive.json`,
    `${root}/./a/.././sensitive.json`,
    `/${root}//sensitive.json`,
    `${root}/sensitive.json/`,
  ];
  const rules = { deny: ['Read(**/sensitive*.json)', 'Peek(**/sensitive*.json)'] };

  for (const [where, options] of [
    ['the options of a Session', { permissions: rules }],
    ['a handler', { permissionHandler: createRuleBasedPermissionHandler({ allow: ['*'], ...rules }) }],
  ]) {
    test(`by rules in ${where}`, async (t) => {
      const root = world(t);
      const paths = spellings(root);
      const list = paths.map((path) => ({ name: 'Read', input: { file_path: path } }));
      list.push(
        ...['pub.json', './sensitive.json', 'here/twice.json'].map((path) => ({ name: 'Peek', input: { path } })),
      );
      list.push({ name: 'Peek', input: { deep: [{ in: { file: `${root}/pub.json` } }] } });
      list.push({ name: 'Peek', input: { paths: [`${root}/public.json`, `${root}/pub.json`] } });
      const fine = [
        { name: 'Read', input: { file_path: `${root}/public.json` } },
        { name: 'Peek', input: { path: 'public.json' } },
      ];
      const { results: all } = await turn(t, [...list, ...fine], local(root, { tools: [peek()], ...options }));
      for (const [at, result] of all.slice(0, list.length).entries()) {
        assert.equal(result.isError, true, JSON.stringify(list[at]));
        assert.match(result.output, /denied by the permission rule "(Read|Peek)\(\*\*\/sensitive\*\.json\)"/);
        assert.doesNotMatch(result.output, /secret/);
      }
      for (const result of all.slice(list.length)) assert.equal(result.isError, false, result.output);
    });
  }

  test('and so is the name it was asked for by, but no rule that allows is taken in by a name', async (t) => {
    const root = world(t);
    const read = { name: 'Read', input: { file_path: `${root}/pub.json` } };
    const denied = await turn(t, [read], local(root, { permissions: { deny: ['Read(pub.json)'] } }));
    assert.match(denied.results[0].output, /denied by the permission rule "Read\(pub\.json\)"/);
    const write = { name: 'Peek', input: { path: `${root}/pub.json` } };
    const options = { tools: [peek('execute')], permissions: { allow: ['Peek(pub.json)'] } };
    const asked = await turn(t, [write], local(root, { ...options, permissionMode: 'default' }));
    assert.match(asked.results[0].output, /needs a confirmation/);
  });

  test('a hard link is another file with the same content, as the documents say', async (t) => {
    const root = world(t);
    linkSync(join(root, 'sensitive.json'), join(root, 'hard.json'));
    const read = { name: 'Read', input: { file_path: `${root}/hard.json` } };
    const { results: all } = await turn(t, [read], local(root, { permissions: rules }));
    assert.equal(all[0].isError, false);
  });
});

describe('PM03 one file has one decision, however rule and path are written', () => {
  test('rules and paths, absolute and relative', async (t) => {
    const base = folder(t);
    const root = join(base, 'real');
    mkdirSync(join(root, 'server', 'a'), { recursive: true });
    writeFileSync(join(root, 'server', '.env'), 'TOKEN=1');
    writeFileSync(join(root, 'server', 'env'), 'fine');
    symlinkSync('real', join(base, 'w'));
    // The working directory is a link, as /tmp is on some systems.
    const cwd = join(base, 'w', 'server');
    const context = { capabilities: { filesystem: { roots: [join(base, 'w')], cwd } } };
    const rules = ['./.env', '.env', '**/.env*', `${base}/w/**/.env`, `${base}/real/**/.env`, `${base}/**/.env`];
    rules.push('./a/../.env', `${base}/w/server/../server//.env`, '.env*');
    for (const rule of rules) {
      const options = {
        profile: 'local',
        permissionMode: 'yolo',
        defaultContext: context,
        tools: [peek()],
        permissions: { deny: [`Read(${rule})`, `Peek(${rule})`] },
      };
      const absolute = [`${base}/w/server/.env`, `${base}/real/server/.env`, `${base}/w/server/a/../.env`];
      absolute.push(`${base}/w//server/.env/`);
      const calls = (name) => [
        ...absolute.map((path) => ({ name: 'Read', input: { file_path: path.replace('.env', name) } })),
        ...['.env', './.env', `${base}/w/server/.env`].map((path) => ({
          name: 'Peek',
          input: { path: path.replace('.env', name) },
        })),
      ];
      for (const name of ['.env', 'env']) {
        const { results: all } = await turn(t, calls(name), options);
        for (const [at, result] of all.entries()) {
          const what = `${rule} on ${JSON.stringify(calls(name)[at].input)}: ${result.output}`;
          assert.equal(result.isError, name === '.env', what);
          if (name === '.env') assert.match(result.output, /denied by the permission rule/, what);
        }
      }
    }
  });

  test('what does not exist yet has the same name', async (t) => {
    const root = folder(t);
    mkdirSync(join(root, 'dir'));
    symlinkSync('dir', join(root, 'link'));
    symlinkSync('dir/.env', join(root, 'dangling'));
    const write = (path) => ({ name: 'Write', input: { file_path: `${root}/${path}`, content: 'x' } });
    const list = ['dir/.env', 'link/.env', 'link/../dir/.env'].map(write);
    list.push({ name: 'Peek', input: { path: `${root}/dangling` } });
    const deny = ['Write(dir/.env)', 'Peek(dir/.env)'];
    const { results: all } = await turn(t, list, local(root, { tools: [peek()], permissions: { deny } }));
    for (const result of all) assert.match(result.output, /denied by the permission rule/);
    assert.deepEqual(readdirSync(join(root, 'dir')), []);
  });
});

describe('PM05 the path of a call is data, never a pattern', () => {
  const names = ['src/api/[:id]/x.ts', 'src/*/x', 'src/{a}/x', 'src/a b/x', 'src/ünï/x', 'src/?/x', 'src/(a)/x'];

  test('a rule for a directory allows whatever names are in it', async (t) => {
    const root = folder(t);
    const list = [...names, 'lib/x'].map((name) => ({
      name: 'Write',
      input: { file_path: `${root}/${name}`, content: name },
    }));
    const options = local(root, { permissionMode: 'default', permissions: { allow: ['Write(src/**)'] } });
    const { results: all } = await turn(t, list, options);
    for (const [at, name] of names.entries()) {
      assert.equal(all[at].isError, false, all[at].output);
      assert.equal(readFileSync(join(root, name), 'utf8'), name);
    }
    assert.match(all.at(-1).output, /needs a confirmation/);
    assert.equal(existsSync(join(root, 'lib')), false);
  });

  test('a path with brackets is not what its brackets would match', async () => {
    const handler = createRuleBasedPermissionHandler({ allow: ['Edit(src/a/x)'], deny: ['Edit(src/b/x)'] });
    const decide = async (path) => {
      const toolMeta = { signature: `Edit:${path}`, isReadOnly: false };
      return (await handler({ toolName: 'Edit', input: {}, affectedPaths: [path], toolKind: 'write', toolMeta }))
        .behavior;
    };
    assert.equal(await decide('src/a/x'), 'allow');
    assert.equal(await decide('src/b/x'), 'deny');
    for (const path of ['src/[a]/x', 'src/*/x', 'src/{a,b}/x', 'src/?/x'])
      assert.equal(await decide(path), 'ask', path);
  });
});

describe('PM06 plan mode changes nothing', () => {
  const allowing = {
    permissions: { allow: ['*'] },
    permissionHandler: async () => ({ behavior: 'allow' }),
    confirmationFallback: 'allow',
  };
  const world = (t) => {
    const root = folder(t);
    const git = (...args) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], { cwd: root });
    git('init', '-q');
    writeFileSync(join(root, 'kept'), 'kept');
    git('add', 'kept');
    git('commit', '-q', '-m', 'first');
    return { root, head: () => git('rev-parse', 'HEAD').toString() };
  };

  test('nothing appears, whatever is allowed besides', async (t) => {
    const { root, head } = world(t);
    const before = [listing(root), head()];
    const commands = [
      "cat <<'X' > f\nmine\nX",
      `python3 -c "open('f','w').write('mine')"`,
      'git commit --allow-empty -m second',
      'echo mine > f',
      'echo mine | tee f',
      'git log > f',
      'git log --output=f',
      'git log; touch f',
      'touch f',
      'sh -c "touch f"',
      '$(touch f)',
      'rm kept',
      'ls && touch f',
      'touch f &',
    ];
    const list = commands.map((command) => ({ name: 'Bash', input: { command } }));
    list.push({ name: 'Bash', input: { command: 'sleep 0; touch f', run_in_background: true } });
    list.push({ name: 'Write', input: { file_path: `${root}/f`, content: 'mine' } });
    list.push({ name: 'Edit', input: { file_path: `${root}/kept`, old_string: 'kept', new_string: 'mine' } });
    list.push({ name: 'KillShell', input: { shell_id: 'x' } });
    list.push('Writer', 'Runner');
    const ran = [];
    const tools = ['Writer', 'Runner'].map((name, at) =>
      tool(name, async () => void ran.push(name), { kind: ['write', 'execute'][at], sideEffect: 'pure' }),
    );
    const { results: all } = await turn(t, list, local(root, { permissionMode: 'plan', tools, ...allowing }));
    for (const [at, result] of all.entries()) {
      assert.equal(result.isError, true, JSON.stringify(list[at]));
      // An Edit of a file that was not read is refused before anybody is asked.
      if (list[at].name !== 'Edit') assert.match(result.output, /plan mode only runs tools that read/, result.output);
    }
    assert.deepEqual([listing(root), head()], before);
    assert.deepEqual(ran, []);
  });

  test('what only looks runs', async (t) => {
    const { root } = world(t);
    const list = [
      { name: 'Bash', input: { command: 'git log --oneline' } },
      { name: 'Read', input: { file_path: `${root}/kept` } },
      { name: 'Grep', input: { pattern: 'kept' } },
    ];
    const { results: all } = await turn(t, list, local(root, { permissionMode: 'plan' }));
    for (const result of all) assert.equal(result.isError, false, JSON.stringify(result.output));
    assert.match(JSON.stringify(all[0].output), /first/);
  });
});

describe('PM09 roots that do not resolve open nothing', () => {
  const every = (root) => [
    { name: 'Read', input: { file_path: `${root}/kept` } },
    { name: 'Read', input: { file_path: '/etc/hostname' } },
    { name: 'Write', input: { file_path: `${root}/f`, content: 'mine' } },
    { name: 'Edit', input: { file_path: `${root}/kept`, old_string: 'kept', new_string: 'mine' } },
    { name: 'Glob', input: { pattern: '*', path: root } },
    { name: 'Grep', input: { pattern: 'kept', path: root } },
    { name: 'Bash', input: { command: 'touch f', cwd: root } },
  ];
  const world = (t) => {
    const root = folder(t);
    writeFileSync(join(root, 'kept'), 'kept');
    return root;
  };

  for (const [what, roots, says] of [
    ['there are none', () => [], /No filesystem access/],
    ['one is missing and one is empty', (root) => [`${root}/gone`, ''], /root ".*": (ENOENT|a root must be absolute)/],
    ['one is empty', () => [''], /root "": a root must be absolute/],
    ['one of several is missing', (root) => [root, `${root}/gone`], /root ".*gone": ENOENT/],
    ['one is relative', (root) => [root, '.'], /root "\.": a root must be absolute/],
    ['one is a file', (root) => [`${root}/kept`], /root ".*kept": a root must be a directory/],
  ]) {
    test(what, async (t) => {
      const root = world(t);
      const options = local(root, {
        defaultContext: { capabilities: { filesystem: { roots: roots(root), cwd: root } } },
        permissions: { allow: ['*'] },
      });
      const { results: all } = await turn(t, every(root), options);
      for (const result of all) {
        assert.equal(result.isError, true, result.output);
        assert.match(result.output, says);
      }
      assert.deepEqual(listing(root), ['kept: kept']);
    });
  }

  test('a root that vanishes is gone', async (t) => {
    const base = folder(t);
    const root = join(base, 'root');
    mkdirSync(root);
    const { session, results: first } = await turn(t, [{ name: 'Glob', input: { pattern: '*' } }], local(root));
    assert.equal(first[0].isError, false);
    await session.close();
    rmSync(root, { recursive: true });
    const { results: all } = await turn(t, every(root), local(root));
    for (const result of all) assert.match(result.output, /Unable to resolve filesystem root/);
    assert.equal(existsSync(root), false);
  });

  test('a root that means nothing authorises no custom tool either', async (t) => {
    for (const roots of [[''], ['.'], ['/gone/for/good']]) {
      const options = { tools: [peek()], defaultContext: { capabilities: { filesystem: { roots } } } };
      const { results: all } = await turn(t, [{ name: 'Peek', input: { path: '/etc/passwd' } }], options);
      assert.match(all[0].output, /dangerous system paths/, JSON.stringify(roots));
    }
  });
});
