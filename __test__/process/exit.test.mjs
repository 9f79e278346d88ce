// When a process ends, and how: by itself once nothing is under way, not before, and never by a crash.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { quiet, run } from '../support/program.mjs';

const parallel = { concurrency: 2 };

/** Name → program. Each prints "done" where its main part ends, and must then end without help. */
const ends = {
  'an idle Session': `await open(['a']); say('done');`,
  'a closed Session': `const s = await open(['a']); await s.close(); say('done');`,
  'a prompt': `await prompt('go', { provider: scriptedProvider(['a']), model: 'm' }); say('done');`,
  'a stream that was read, without close': `
    const s = await open(['a']); await s.send('go'); for await (const _ of s.stream()); say('done');`,
  'an input that is never streamed': `const s = await open(['a']); await s.send('go'); say('done');`,
  'a stream that never began': `const s = await open(['a']); await s.send('go'); s.stream(); say('done');`,
  'a stream of which one event was read': `
    const s = await open([{ text: Array(100_000).fill('x') }]); await s.send('go'); await s.stream().next();
    say('done');`,
  'an endless generator tool whose consumer went away': `
    const s = await open([calls('G')], { tools: [generator('G', async function* () {
      for (;;) yield { kind: 'message', content: { summary: 'x'.repeat(10_000) } };
    })] });
    await s.send('go'); const stream = s.stream();
    while ((await stream.next()).value.type !== 'tool_message'); say('done');`,
  'a stream that was left': `
    const s = await open([{ text: Array(100_000).fill('x') }]); await s.send('go');
    for await (const event of s.stream()) if (event.type === 'content') break; say('done');`,
  'a left stream with a tool that never settles': `
    let started; const running = new Promise((resolve) => { started = resolve; });
    const s = await open([calls('T')], { tools: [tool('T', () => { started(); return forever(); })] });
    await s.send('go');
    for await (const event of s.stream()) if (event.type === 'tool_use') { await running; break; }
    say('done');`,
  'a left stream with a permission request that is never answered': `
    let asked; const asking = new Promise((resolve) => { asked = resolve; });
    const s = await open([calls('T')], {
      tools: [tool('T', async () => null)], permissionHandler: () => { asked(); return forever(); } });
    await s.send('go');
    for await (const event of s.stream()) if (event.type === 'tool_use') { await asking; break; }
    say('done');`,
  'an aborted request with a model that hangs': `
    const s = await open([{ text: ['a'], fault: { kind: 'hang', after: 1 } }]); await s.send('go');
    for await (const event of s.stream()) if (event.type === 'content') await s.abort(); say('done');`,
  'a scripted function that never answers, left': `
    const s = await open(() => forever()); await s.send('go');
    for await (const event of s.stream()) break; say('done');`,
  'model middleware without end whose consumer went away': `
    const wrapStream = async function* () { for (;;) yield { content: 'x'.repeat(1_000) }; };
    const s = await open([], { middleware: { model: [{ wrapStream }] } }); await s.send('go'); const stream = s.stream();
    while ((await stream.next()).value.type !== 'content'); say('done');`,
  'a left stream with model middleware that never settles': `
    let began; const running = new Promise((resolve) => { began = resolve; });
    const wrapStream = async function* (_, next) { yield* next(); began(); await forever(); };
    const s = await open(['a'], { middleware: { model: [{ wrapStream }] } }); await s.send('go');
    const stream = s.stream(); while ((await stream.next()).value.type !== 'content'); await running;
    void stream.return(); say('done');`,
  'an agent response that is never read': `
    const agent = await createAgent({ provider: scriptedProvider(['a']), model: 'm' }); await agent.send('go');
    say('done');`,
  'a fork': `
    const s = await open(['a', 'b']); await s.send('go'); for await (const _ of s.stream());
    const f = await s.fork(); await f.send('on'); for await (const _ of f.stream()); say('done');`,
  'built-in tools, called directly, finished and abandoned': `
    const { getBuiltinTools } = await import('@blade-ai/agent-sdk/advanced');
    const { mkdtempSync, realpathSync } = await import('node:fs');
    const { tmpdir } = await import('node:os');
    const dir = realpathSync(mkdtempSync(tmpdir() + '/exit-'));
    const glob = (await getBuiltinTools()).find(({ name }) => name === 'Glob');
    const context = { contextSnapshot: { filesystemRoots: [dir], cwd: dir } };
    const first = glob.execute({ pattern: '*' }, context);
    while (!(await first.next()).done);
    glob.execute({ pattern: '**/*' }, context).next().catch(() => {});
    say('done');`,
};

describe('a process ends by itself after', parallel, () => {
  for (const [name, source] of Object.entries(ends)) {
    test(name, async () => assert.deepEqual(await run(source), quiet('done')));
  }
});

const stays = {
  'next() waits for a tool without a handle of its own': `
    const s = await open([calls('T'), 'answer'], {
      tools: [tool('T', () => new Promise((resolve) => setTimeout(resolve, 50, 'x').unref()))] });
    await s.send('go'); for await (const event of s.stream()) if (event.type === 'result') say(event.content);`,
  'the loop waits for something the request will do': `
    let started; const running = new Promise((resolve) => { started = resolve; });
    const s = await open([calls('T'), 'answer'], { tools: [tool('T', async () => { started(); return null; })] });
    await s.send('go');
    for await (const event of s.stream()) {
      if (event.type === 'turn_start') await running;
      if (event.type === 'result') say(event.content);
    }`,
  'a tool waits for what the loop will do': `
    let open_; const gate = new Promise((resolve) => { open_ = resolve; });
    const s = await open([calls('T'), 'answer'], { tools: [tool('T', () => gate)] });
    await s.send('go');
    for await (const event of s.stream()) {
      if (event.type === 'tool_use') setTimeout(open_, 50, 'late').unref();
      if (event.type === 'result') say(event.content);
    }`,
  'a permission request waits for its answer': `
    const s = await open([calls('T'), 'answer'], { tools: [tool('T', async () => null)],
      permissionHandler: () => new Promise((r) => setTimeout(r, 50, { behavior: 'allow' }).unref()) });
    await s.send('go'); for await (const event of s.stream()) if (event.type === 'result') say(event.content);`,
  'abort() and close() wait for a cleanup': `
    const s = await open([calls('T'), 'answer'], { tools: [tool('T', (_, { signal }) => new Promise((resolve) =>
      signal.addEventListener('abort', () => setTimeout(resolve, 50).unref())))] });
    await s.send('go');
    const stream = s.stream(); while ((await stream.next()).value.type !== 'tool_use');
    await s.abort(); await s.close(); say('answer');`,
  'the model is slow': `
    const s = await open([{ text: 'answer', delayMs: 100 }]); await s.send('go');
    for await (const event of s.stream()) if (event.type === 'result') say(event.content);`,
};

describe('a process goes on while', parallel, () => {
  for (const [name, source] of Object.entries(stays)) {
    test(name, async () => assert.deepEqual(await run(source), quiet('answer')));
  }
});

const full = `
  const s = await open([{ text: Array(100_000).fill('x') }]); await s.send('go');
  const stream = s.stream(); await stream.next();`;
const exits = {
  'a full queue': `${full} process.exit(0);`,
  'a waiting consumer': `
    const s = await open([{ text: ['a'], fault: { kind: 'hang', after: 1 } }]); await s.send('go');
    setImmediate(() => process.exit(0)); for await (const _ of s.stream());`,
  'the loop over a stream': `
    const s = await open([{ text: Array(10_000).fill('x') }]); await s.send('go');
    for await (const event of s.stream()) if (event.type === 'content') process.exit(0);`,
  'a tool callback': `
    const s = await open([calls('T', 'T', 'T')], { tools: [tool('T', () => process.exit(0))] });
    await s.send('go'); for await (const _ of s.stream());`,
  'a permission handler': `
    const s = await open([calls('T')], { tools: [tool('T', async () => null)], permissionHandler: () => process.exit(0) });
    await s.send('go'); for await (const _ of s.stream());`,
  'an abort listener': `
    const s = await open([calls('T')], { tools: [tool('T', (_, { signal }) => {
      signal.addEventListener('abort', () => process.exit(0)); return forever(); })], toolTimeoutMs: 10 });
    await s.send('go'); for await (const _ of s.stream());`,
};
const rounds = process.env.STRESS ? 100 : 2;

describe('process.exit() is clean in', parallel, () => {
  for (const [name, source] of Object.entries(exits)) {
    test(name, async () => {
      for (let n = 0; n < rounds; n++) assert.deepEqual(await run(source), quiet());
    });
  }
});

test('an exception in a timer a tool left behind is the application’s own', async () => {
  const source = `
    const s = await open([calls('T'), 'answer'], { tools: [tool('T', async () => {
      setTimeout(() => { throw new Error('from the timer'); });
      await new Promise((resolve) => setTimeout(resolve, 20));
      return null;
    })] });
    await s.send('go'); for await (const event of s.stream()) if (event.type === 'result') say(event.content);`;
  const uncaught = await run(source);
  assert.equal(uncaught.code, 1);
  assert.match(uncaught.errors, /Error: from the timer/);
  const caught = await run(`process.on('uncaughtException', ({ message }) => say(message)); ${source}`);
  assert.deepEqual(caught, quiet('from the timer', 'answer'));
});

test('no rejection is left unhandled, whatever callbacks do and whoever goes away', async () => {
  const source = `
    const kinds = [
      () => Promise.reject(undefined), () => Promise.reject(new Error('x')), () => { throw null; },
      () => ({ then: (_, reject) => reject(new Error('thenable')) }),
      (_, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ];
    const tools = kinds.map((execute, n) => tool('T' + n, execute));
    const names = tools.map(({ name }) => name);
    for (const how of ['read', 'leave', 'abort', 'close', 'drop']) {
      const s = await open([calls(...names.slice(0, 4)), calls(...names), 'end'], { tools, toolTimeoutMs: 30 });
      await s.send('go');
      const stream = s.stream();
      for await (const event of stream) {
        if (event.type !== 'tool_result') continue;
        if (how === 'leave') break;
        if (how === 'abort') await s.abort();
        if (how === 'close') void s.close();
        if (how === 'drop') { stream.next(); stream.next(); void stream.return(); }
      }
      await s.close();
    }
    await macrotask(); say('done');`;
  assert.deepEqual(await run(source, { flags: ['--unhandled-rejections=strict'] }), quiet('done'));
});

describe('garbage collection takes nothing that is in use', parallel, () => {
  const flags = ['--expose-gc'];
  test('10,000 events arrive when only the iterator is kept', async () => {
    const source = `
      const begin = async () => {
        const s = await open([{ text: Array(10_000).fill('x') }]); await s.send('go'); return s.stream();
      };
      let n = 0;
      for await (const event of await begin()) if (event.type === 'content' && ++n % 10 === 0) {
        if (n % 500 === 0) { await macrotask(); gc(); }
      }
      say(String(n));`;
    assert.deepEqual(await run(source, { flags }), quiet('10000'));
  });

  test('a loop goes on that only the request itself can continue', async () => {
    const source = `
      const begin = async () => {
        let started; const running = new Promise((resolve) => { started = resolve; });
        const s = await open([calls('T'), 'answer'], { tools: [tool('T', async () => {
          await macrotask(); started(); return null; })] });
        await s.send('go');
        for await (const event of s.stream()) {
          if (event.type === 'tool_use') await running;
          if (event.type === 'result') say(event.content);
        }
      };
      void begin();
      setImmediate(() => { gc(); setImmediate(() => gc()); });`;
    for (let n = 0; n < 3; n++) assert.deepEqual(await run(source, { flags }), quiet('answer'));
  });

  test('a stream can be read when only the Session was kept', async () => {
    const source = `
      const s = await open([{ text: Array(10_000).fill('x') }]); await s.send('go');
      await s.stream().next(); await macrotask(); gc(); await macrotask(); gc();
      await s.abort(); await s.close(); say('done');`;
    assert.deepEqual(await run(source, { flags }), quiet('done'));
  });
});
