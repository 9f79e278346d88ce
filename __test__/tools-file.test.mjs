// The field cases of Edit, Write and Read, through a Session and by calling the built-in tools directly.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createSession, getBuiltinTools } from '@blade-ai/agent-sdk/advanced';
import { collectToolExecution } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { ask, folder, results, textOf } from './support/run.mjs';

const posix = process.platform !== 'win32';
const fixture = (name) => readFileSync(new URL(`./fixtures/files/${name}`, import.meta.url));

const tools = new Map((await getBuiltinTools()).map((tool) => [tool.name, tool]));

let direct = 0;

/** The tools called directly, as one session in one folder. */
function bench(t) {
  const root = folder(t);
  const context = {
    sessionId: `direct-${process.pid}-${direct++}`,
    contextSnapshot: { filesystemRoots: [root], cwd: root },
  };
  const run = (name) => (params) => collectToolExecution(tools.get(name).execute(params, context));
  const path = (name) => join(root, name);
  const put = (name, bytes) => {
    writeFileSync(path(name), bytes);
    return path(name);
  };
  const get = (name) => readFileSync(path(name));
  const [Read, write, edit] = ['Read', 'Write', 'Edit'].map(run);
  const Edit = async (file, old_string, new_string, more) => {
    await Read({ file_path: file });
    return edit({ file_path: file, old_string, new_string, ...more });
  };
  const Write = async (file, content) => {
    await Read({ file_path: file });
    return write({ file_path: file, content });
  };
  return { root, path, put, get, Read, Edit, Write, write, edit };
}

const ok = (result) => {
  assert.equal(result.status, 'success', JSON.stringify(result.error ?? result));
  return result;
};

const failed = (result, says) => {
  assert.equal(result.status, 'error', JSON.stringify(result.model));
  if (says) assert.match(`${result.error.message} ${JSON.stringify(result.model)}`, says);
  return result;
};

const modelText = (result) => (typeof result.model === 'string' ? result.model : JSON.stringify(result.model));

/** A Session over a folder that lets everything run. */
async function open(t, turns, options = {}) {
  const root = options.root ?? folder(t);
  const provider = scriptedProvider(turns);
  const session = await createSession({
    provider,
    model: 'm',
    permissionMode: 'yolo',
    defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    ...options.session,
  });
  t.after(() => session.close());
  return { root, session, provider };
}

const calls = (name, list) => ({ toolCalls: list.map((input) => ({ name, input })) });

describe('Edit', () => {
  test('ED01: a match over CRLF lines is found by its LF text, and every line keeps CRLF', async (t) => {
    const { put, get, Edit } = bench(t);
    const file = put('crlf-tabs.c', fixture('crlf-tabs.c'));
    ok(await Edit(file, '\tif (a) {\n\t\tgo();', '\tif (b) {\n\t\tgo();\n\t\tstop();'));
    assert.equal(get('crlf-tabs.c').toString(), '\tif (b) {\r\n\t\tgo();\r\n\t\tstop();\r\n\t}\r\n');
  });

  test('ED02: an edit changes nothing but its words', async (t) => {
    const { put, get, Edit } = bench(t);
    const file = put('f', 'one\r\ntwo\r\nthree\r\n');
    ok(await Edit(file, 'two', 'TWO'));
    assert.equal(get('f').toString(), 'one\r\nTWO\r\nthree\r\n');
  });

  test('ED04: edits follow each other without a new read; a change from outside is noticed', async (t) => {
    const { put, get, Edit, edit } = bench(t);
    const file = put('f', 'one\r\ntwo\r\nthree\r\n');
    ok(await Edit(file, 'one', '1'));
    ok(await edit({ file_path: file, old_string: 'two', new_string: '2' }));
    const times = statSync(file);
    writeFileSync(file, get('f').toString().replace('three', 'thr3e'));
    utimesSync(file, times.atime, times.mtime);
    const before = get('f');
    failed(await edit({ file_path: file, old_string: '1', new_string: 'x' }), /changed|modified|read/i);
    assert.deepEqual(get('f'), before);
  });

  test('ED05: a byte order mark stays, once, and does not keep the first line from matching', async (t) => {
    for (const [old, fresh] of [
      ['Write-Host 1', 'Write-Host 2'],
      ['Write-Host 1\n', 'Write-Host 2\n'],
    ]) {
      const { put, get, Edit } = bench(t);
      ok(await Edit(put('bom.ps1', fixture('bom.ps1')), old, fresh));
      assert.equal(get('bom.ps1').toString('latin1').slice(0, 3), '\xEF\xBB\xBF');
      assert.equal(get('bom.ps1').subarray(3).toString(), 'Write-Host 2\n# примечание\n');
    }
  });

  test('ED06: a Latin-1 file keeps its bytes or is refused', async (t) => {
    const { put, get, Edit } = bench(t);
    const before = fixture('latin1.ini');
    const result = await Edit(put('latin1.ini', before), '80', '81');
    if (result.status === 'error') {
      assert.match(result.error.message, /encod|UTF-8|Latin/i);
      assert.deepEqual(get('latin1.ini'), before);
    } else {
      assert.equal(get('latin1.ini').toString('latin1'), before.toString('latin1').replace('80', '81'));
    }
    assert.ok(!get('latin1.ini').includes(Buffer.from('\uFFFD')));
  });

  test('ED08: replacement patterns are text', async (t) => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: replacement patterns of several languages
    const text = 'say("$& $$ $1 ${x} $` $\' \\1")';
    const { put, get, Edit } = bench(t);
    ok(await Edit(put('two', 'say(1)\nsay(1)\n'), 'say(1)', text, { replace_all: true }));
    assert.equal(get('two').toString(), `${text}\n${text}\n`);
    ok(await Edit(put('one', 'say(1)\n'), 'say(1)', text));
    assert.equal(get('one').toString(), `${text}\n`);
  });

  test('ED09: overlapping matches count once when all are replaced, and make a single replacement ambiguous', async (t) => {
    const { put, get, Edit } = bench(t);
    const all = ok(await Edit(put('f', 'aaaa\n'), 'aa', 'b', { replace_all: true }));
    assert.equal(get('f').toString(), 'bb\n');
    assert.match(JSON.stringify(all), /"(replacements|count|[a-z_]*[rR]eplace[a-zA-Z_]*)":2|2 /);
    failed(await Edit(put('g', 'aaaa\n'), 'aa', 'b'), /unique|match|occur/i);
    failed(await Edit(put('h', 'aaa\n'), 'aa', 'b'), /unique|match|occur/i);
    assert.equal(get('h').toString(), 'aaa\n');
  });

  test('ED10: another normalisation is matched canonically or named, and other lines keep theirs', async (t) => {
    const { put, get, Edit } = bench(t);
    const nfd = 're\u0301sume\u0301 = 1\ncafe\u0301\n';
    const result = await Edit(put('f', nfd), 'r\u00e9sum\u00e9 = 1', 'r\u00e9sum\u00e9 = 2');
    if (result.status === 'error') {
      assert.match(modelText(result), /normali[sz]/i);
      assert.equal(get('f').toString(), nfd);
    } else {
      assert.ok(get('f').toString().endsWith('\ncafe\u0301\n'));
    }
  });

  test('ED12: a lenient match never rewrites lines it does not touch', async (t) => {
    const { put, get, Edit } = bench(t);
    const text = 'if ready:\n        start( now )\n\tlog()\n        stop()\n';
    const result = await Edit(put('f', text), 'start(now)', 'begin(now)');
    const after = get('f').toString().split('\n');
    for (const line of [0, 2, 3]) assert.equal(after[line], text.split('\n')[line]);
    if (result.status === 'error') assert.equal(get('f').toString(), text);
  });

  test('ED15: the mode stays, for Edit and for Write', { skip: !posix && 'modes are POSIX' }, async (t) => {
    for (const mode of [0o755, 0o700, 0o4755, 0o444]) {
      for (const change of ['Edit', 'Write']) {
        const kit = bench(t);
        const file = kit.put('run.sh', '#!/bin/sh\necho one\n');
        chmodSync(file, mode);
        const result =
          change === 'Edit' ? await kit.Edit(file, 'one', 'two') : await kit.Write(file, '#!/bin/sh\necho two\n');
        assert.equal(statSync(file).mode & 0o7777, mode, `${change} ${mode.toString(8)}`);
        if (mode !== 0o444 || result.status === 'success') {
          ok(result);
          assert.match(kit.get('run.sh').toString(), /two/);
        } else assert.match(modelText(result), /permission|read-only|EACCES/i);
      }
    }
  });

  test('ED17: a link stays a link and its target is changed', { skip: !posix && 'needs symbolic links' }, async (t) => {
    for (const change of ['Edit', 'Write']) {
      const kit = bench(t);
      kit.put('real.txt', 'old\n');
      symlinkSync('real.txt', kit.path('link.txt'));
      const { ino } = lstatSync(kit.path('link.txt'));
      ok(
        change === 'Edit'
          ? await kit.Edit(kit.path('link.txt'), 'old', 'new')
          : await kit.Write(kit.path('link.txt'), 'new\n'),
      );
      assert.equal(readlinkSync(kit.path('link.txt')), 'real.txt');
      assert.equal(lstatSync(kit.path('link.txt')).ino, ino);
      assert.equal(kit.get('real.txt').toString(), 'new\n');
    }
  });

  test('ED19: hard links stay together, or the result says that they do not', {
    skip: !posix && 'needs hard links',
  }, async (t) => {
    const { put, path, get, Edit } = bench(t);
    const file = put('a', 'old\n');
    linkSync(file, path('b'));
    const result = ok(await Edit(file, 'old', 'new'));
    if (get('b').toString() === 'new\n') assert.equal(statSync(file).nlink, 2);
    else assert.match(JSON.stringify(result), /hard.?link/i);
  });

  test('ED20: six edits of one file in one turn all land', async (t) => {
    const edits = [10, 50, 90, 130, 170, 210].map((n, at) => [`L${String(n).padStart(3, '0')}`, 'ABCDEF'[at]]);
    for (let round = 0; round < 25; round++) {
      const root = folder(t);
      const file = join(root, 'f.txt');
      const lines = Array.from({ length: 240 }, (_, at) => `L${String(at + 1).padStart(3, '0')}`);
      writeFileSync(file, `${lines.join('\n')}\n`);
      const list = edits.map(([old_string, new_string]) => ({ file_path: file, old_string, new_string }));
      const turns = [calls('Read', [{ file_path: file }]), calls('Edit', list), 'done'];
      const { session } = await open(t, turns, { root });
      const all = results(await ask(session)).slice(1);
      const after = readFileSync(file, 'utf8').trimEnd().split('\n');
      assert.equal(after.length, 240);
      for (const [at, [old, fresh]] of edits.entries()) {
        assert.equal(all[at].isError, false, JSON.stringify(all[at].output));
        assert.equal(after[Number(old.slice(1)) - 1], fresh);
      }
      await session.close();
    }
  });

  test('ED22: the final newline changes only where an edit covers it', async (t) => {
    const { put, get, Edit } = bench(t);
    for (const [before, old, fresh, after] of [
      ['a\nb', 'a', 'A', 'A\nb'],
      ['a\nb\n', 'a', 'A', 'A\nb\n'],
      ['A\nb', 'b', 'B\n', 'A\nB\n'],
    ]) {
      ok(await Edit(put('f', before), old, fresh));
      assert.equal(get('f').toString(), after);
    }
  });

  test('ED23: an empty old_string never matches: it wipes, interleaves and creates nothing', async (t) => {
    const { put, get, path, Edit } = bench(t);
    const full = put('full', 'text\n');
    put('empty', '');
    for (const file of [full, path('empty'), path('missing')]) {
      for (const more of [{}, { replace_all: true }]) {
        await assert.rejects(
          tools
            .get('Edit')
            .execute({ file_path: file, old_string: '', new_string: 'x', ...more }, {})
            .next(),
          {
            code: 'TOOL_VALIDATION_ERROR',
            message: /old_string must not have fewer than 1 characters/,
          },
        );
      }
    }
    failed(await Edit(full, 'text', 'text'));
    assert.equal(get('full').toString(), 'text\n');
    assert.deepEqual(readdirSync(path('.')).sort(), ['empty', 'full']);
  });

  test('an edit without a read, and one outside of the roots, are refused and change nothing', async (t) => {
    const { put, get, edit } = bench(t);
    const file = put('f', 'one\n');
    failed(await edit({ file_path: file, old_string: 'one', new_string: 'two' }), /[Rr]ead/);
    const outside = join(folder(t), 'g');
    writeFileSync(outside, 'one\n');
    const kit = bench(t);
    failed(await kit.Edit(outside, 'one', 'two'));
    assert.equal(get('f').toString(), 'one\n');
    assert.equal(readFileSync(outside, 'utf8'), 'one\n');
  });
});

describe('Write', () => {
  test('WR01: a byte order mark is kept or its loss is told, and never doubled', async (t) => {
    const { put, get, Write } = bench(t);
    const file = put('bom.ps1', fixture('bom.ps1'));
    const result = ok(await Write(file, 'hi\n'));
    const kept = get('bom.ps1').toString('latin1') === '\xEF\xBB\xBFhi\n';
    assert.ok(kept || (get('bom.ps1').toString() === 'hi\n' && /BOM|byte order/i.test(JSON.stringify(result))));
    ok(await Write(file, '\uFEFFhi\n'));
    assert.equal(get('bom.ps1').toString('latin1'), '\xEF\xBB\xBFhi\n');
  });

  test('WR02: a write from a stale read is refused and what came from outside survives', async (t) => {
    const { put, get, Read, write } = bench(t);
    const file = put('f', 'old\n');
    await Read({ file_path: file });
    appendFileSync(file, 'keep-me\n');
    failed(await write({ file_path: file, content: 'old\nmine\n' }), /changed|modified|[Rr]ead/);
    assert.match(get('f').toString(), /keep-me/);
    await Read({ file_path: file });
    const times = statSync(file);
    writeFileSync(file, get('f').toString().replace('old', 'OLD'));
    utimesSync(file, times.atime, times.mtime);
    failed(await write({ file_path: file, content: 'mine\n' }), /changed|modified|[Rr]ead/);
    assert.match(get('f').toString(), /^OLD/);
  });

  test('WR04: a full disk leaves the old bytes and no temporary file', {
    skip: !canMount() && 'needs to mount a small tmpfs',
  }, async (t) => {
    const kit = bench(t);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', kit.root]);
    try {
      const file = kit.put('f', 'x'.repeat(100 << 10));
      kit.put('filler', Buffer.alloc((1 << 20) - (150 << 10)));
      const listing = readdirSync(kit.root);
      failed(await kit.Write(file, 'y'.repeat(2 << 20)), /space|ENOSPC/i);
      failed(await kit.Edit(file, 'x'.repeat(100 << 10), 'z'.repeat(500 << 10)), /space|ENOSPC/i);
      assert.equal(kit.get('f').toString(), 'x'.repeat(100 << 10));
      assert.deepEqual(readdirSync(kit.root), listing);
    } finally {
      execFileSync('umount', [kit.root]);
    }
  });

  test('WR06: a link that is swapped in after the approval leads nowhere', {
    skip: !posix && 'needs symbolic links',
  }, async (t) => {
    for (const [name, input] of [
      ['Write', { content: 'mine\n' }],
      ['Edit', { old_string: 'old', new_string: 'mine' }],
    ]) {
      const root = folder(t);
      const secret = join(folder(t), 'secret');
      const file = join(root, 'f');
      writeFileSync(secret, 'old secret\n');
      writeFileSync(file, 'old\n');
      const permissionHandler = async ({ toolName }) => {
        if (toolName === name) {
          rmSync(file);
          symlinkSync(secret, file);
        }
        return { behavior: 'allow' };
      };
      const turns = [calls('Read', [{ file_path: file }]), calls(name, [{ file_path: file, ...input }]), 'x'];
      const { session } = await open(t, turns, { root, session: { permissionHandler } });
      const [, result] = results(await ask(session));
      assert.equal(result.isError, true, name);
      assert.equal(readFileSync(secret, 'utf8'), 'old secret\n');
    }
  });

  test('a folder swapped for a link after the approval leads nowhere either', {
    skip: !posix && 'needs symbolic links',
  }, async (t) => {
    const root = folder(t);
    const outside = folder(t);
    mkdirSync(join(root, 'sub'));
    const permissionHandler = async () => {
      renameSync(join(root, 'sub'), join(root, 'moved'));
      symlinkSync(outside, join(root, 'sub'));
      return { behavior: 'allow' };
    };
    const turns = [calls('Write', [{ file_path: join(root, 'sub', 'f'), content: 'x' }]), 'x'];
    const { session } = await open(t, turns, { root, session: { permissionHandler } });
    await ask(session);
    assert.deepEqual(readdirSync(outside), []);
  });
});

describe('Read', () => {
  test('RD01: a picture by name only is not sent as one, and the session goes on', async (t) => {
    const root = folder(t);
    writeFileSync(join(root, 'fake.png'), fixture('fake.png'));
    const { session, provider } = await open(
      t,
      [calls('Read', [{ file_path: join(root, 'fake.png') }]), 'seen', 'fine'],
      { root },
    );
    await ask(session);
    assert.equal(textOf(await ask(session)), 'fine');
    assert.ok(!JSON.stringify(provider.requests.at(-1)).includes('image_url'));
  });

  test('RD03: UTF-16 with a byte order mark is read as text; an edit keeps it or refuses', async (t) => {
    for (const [name, encoding] of [
      ['utf16le.txt', 'utf-16le'],
      ['utf16be.txt', 'utf-16be'],
    ]) {
      const { put, get, Read, Edit } = bench(t);
      const file = put(name, fixture(name));
      const result = await Read({ file_path: file });
      if (result.status === 'error') {
        assert.match(modelText(result), /UTF-16|encod/i);
        continue;
      }
      const shown = modelText(result);
      assert.match(shown, /héllo/);
      assert.match(shown, /wörld/);
      assert.ok(!shown.includes('\0') && !shown.includes('\uFEFF'));
      const before = get(name);
      const edited = await Edit(file, 'héllo', 'bye');
      if (edited.status === 'error') assert.deepEqual(get(name), before);
      else assert.equal(new TextDecoder(encoding).decode(get(name)), 'bye\r\nwörld\r\n');
    }
  });

  test('RD05: a character across a sample edge does not make a text binary', async (t) => {
    const { put, Read } = bench(t);
    const edges = [511, 999, 1023, 4095, 8191, 65535];
    for (const edge of edges) {
      const texts = [`${'a'.repeat(edge)}ç\nx\n`, ...[0, 1, 2, 3].map((n) => `${'a'.repeat(edge - n)}😀\nx\n`)];
      for (const text of texts) {
        const shown = modelText(ok(await Read({ file_path: put('f', text) })));
        assert.ok(!shown.includes('\uFFFD'));
        assert.match(shown.trimEnd(), /x$/);
      }
    }
  });

  test('RD06: one endless line is cut, says its length, and is not empty', async (t) => {
    const { put, Read } = bench(t);
    const result = ok(await Read({ file_path: put('f', 'y'.repeat(5 << 20)), offset: 0, limit: 1 }));
    const shown = modelText(result);
    assert.ok(shown.length <= 256 << 10 && shown.includes('yyyy'), String(shown.length));
    assert.match(`${shown} ${JSON.stringify(result.metadata)}`, /5242880/);
  });

  test('RD07: advice about a limit works when it is followed', async (t) => {
    const { put, Read } = bench(t);
    const file = put('f', 'some line of text\n'.repeat(9_200));
    const first = await Read({ file_path: file, offset: 0, limit: 10_000 });
    const shown = modelText(first);
    const next = /offset[^0-9]{0,12}(\d+)/i.exec(shown);
    const limit = /limit[^0-9]{0,12}(\d+)/i.exec(shown);
    assert.ok(first.status === 'success' || limit, shown.slice(-400));
    if (next) ok(await Read({ file_path: file, offset: Number(next[1]) }));
    if (first.status === 'error') ok(await Read({ file_path: file, offset: 0, limit: Number(limit[1]) }));
  });

  test('RD08: what is no file is refused at once, whatever it is', {
    skip: !posix && 'needs POSIX files',
  }, async (t) => {
    const kit = bench(t);
    execFileSync('mkfifo', [kit.path('p')]);
    const server = createServer();
    await new Promise((resolve) => server.listen(kit.path('s'), resolve));
    t.after(() => server.close());
    const started = performance.now();
    for (const name of ['p', 's', '.']) {
      for (let round = 0; round < 17; round++) failed(await kit.Read({ file_path: kit.path(name) }));
      failed(await kit.edit({ file_path: kit.path(name), old_string: 'a', new_string: 'b' }));
      failed(await kit.write({ file_path: kit.path(name), content: 'b' }));
    }
    for (const path of ['/dev/zero', '/dev/tty']) failed(await kit.Read({ file_path: path }));
    assert.ok(performance.now() - started < 3000);
  });

  test('a device inside a root is refused as well', {
    skip: process.platform !== 'linux' && 'needs /dev',
  }, async () => {
    const context = { sessionId: 'devices', contextSnapshot: { filesystemRoots: ['/dev', '/proc'], cwd: '/dev' } };
    const read = (file_path) => collectToolExecution(tools.get('Read').execute({ file_path }, context));
    failed(await read('/dev/zero'));
    const status = await read('/proc/self/status');
    if (status.status === 'success') assert.match(modelText(status), /Name:/);
  });

  test('a missing file names what is near', async (t) => {
    const { put, path, Read } = bench(t);
    put('config.json', '{}');
    failed(await Read({ file_path: path('confg.json') }), /not (found|exist)|no such/i);
  });
});

function canMount() {
  return process.platform === 'linux' && process.getuid() === 0 && spawnable();
}

/** Whether this process may mount a file system, found out by doing it. */
function spawnable() {
  try {
    execFileSync('unshare', ['-m', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
