// Memory stays flat over many Sessions, calls and requests, closed or not.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { quiet, run } from '../support/program.mjs';

/** Measures after full collections with macrotasks between them, in which finalisers run. */
const MEASURE = `
  const settled = async () => { for (let n = 0; n < 4; n++) { gc(); await macrotask(); } };
  /**
   * Runs rounds of work until allocators have what they keep, then twice as many, and says whether those grew the
   * process: by 4 kB for each time around, or as much as allocators may still move.
   */
  const flat = async (name, rounds, times, work) => {
    const repeat = async (count) => { for (let n = 0; n < count; n++) { await work(times); await settled(); } };
    await repeat(rounds);
    const before = process.memoryUsage.rss();
    await repeat(2 * rounds);
    const grown = (process.memoryUsage.rss() - before) / 1024;
    say(name + (grown < Math.max(2 * rounds * times * 4, 8_000) ? ' flat' : ' grew by ' + Math.round(grown) + ' kB'));
  };
`;

const cases = {
  'thousands of Sessions opened and closed': `
    await flat('closed', 6, 250, async (times) => {
      for (let n = 0; n < times; n++) await (await open(['a'], { tools: [tool('T', async () => null)] })).close();
    });`,
  'thousands of Sessions used and closed': `
    await flat('used', 5, 200, async (times) => {
      for (let n = 0; n < times; n++) {
        const s = await open([calls('T'), 'a'], { tools: [tool('T', async () => null)] });
        await s.send('go'); for await (const _ of s.stream()); await s.close();
      }
    });`,
  'thousands of Sessions with a logger, closed and dropped': `
    let told = 0;
    const logger = { log: () => told++ };
    await flat('logged', 10, 200, async (times) => {
      for (let n = 0; n < times; n++) {
        const s = await open([calls('T'), 'a'], { tools: [tool('T', async () => null)], logger });
        await s.send('go'); for await (const _ of s.stream());
        if (n % 2 === 0) await s.close();
      }
    });
    say(String(told > 60_000));`,
  'thousands of Sessions dropped': `
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const drop = async (times) => {
      for (let n = 0; n < times; n++) {
        const s = await open(['a', 'b', 'c'], { tools: [tool('T', async () => null)] });
        registry.register(s);
        await s.send('go');
        if (n % 3 === 0) for await (const _ of s.stream());
        if (n % 3 === 1) await s.stream().next();
        if (n % 200 === 0) await macrotask();
      }
      await macrotask();
    };
    await flat('dropped', 6, 250, drop);
    for (let n = 0; n < 50 && collected < 4_500; n++) await settled();
    say(String(collected));`,
  'Sessions dropped in the middle of a long answer': `
    let collected = 0;
    const registry = new FinalizationRegistry(() => collected++);
    const text = Array(100_000).fill('x');
    const drop = async () => {
      const s = await open([{ text }]); registry.register(s); await s.send('go'); await s.stream().next();
    };
    for (let n = 0; n < 20; n++) await drop();
    for (let n = 0; n < 2_000 && collected < 20; n++) await settled();
    say(String(collected));`,
  'thousands of requests that are left, aborted and read': `
    await flat('requests', 6, 250, async (times) => {
      const s = await open(() => ({ text: ['a', 'b'] }));
      for (let n = 0; n < times; n++) {
        await s.send('go');
        if (n % 3 === 0) for await (const _ of s.stream()) break;
        if (n % 3 === 1) await s.abort();
        if (n % 3 === 2) for await (const _ of s.stream());
      }
    });`,
  'thousands of requests through model middleware': `
    await flat('middleware', 6, 250, async (times) => {
      const middleware = { model: [{ async *wrapStream(_, next) { yield* next(); } }] };
      const s = await open(() => ({ text: ['a', 'b'] }), { middleware });
      for (let n = 0; n < times; n++) {
        await s.send('go');
        if (n % 3 === 0) for await (const _ of s.stream()) break;
        if (n % 3 === 1) { const stream = s.stream(); await stream.next(); await s.abort(); await stream.return(); }
        if (n % 3 === 2) for await (const _ of s.stream());
      }
      await s.close();
    });`,
  'callbacks that never settle': `
    // Together, because each of them is waited for as long as callbacks may clean up.
    await flat('forever', 1, 250, (times) =>
      Promise.all(Array.from({ length: times }, async () => {
        let asked; const asking = new Promise((resolve) => { asked = resolve; });
        const s = await open([calls('T')], { tools: [tool('T', async () => null)],
          permissionHandler: () => { asked(); return forever(); } });
        await s.send('go');
        for await (const event of s.stream()) if (event.type === 'tool_use') { await asking; break; }
      })),
    );`,
};
const expected = {
  'thousands of Sessions opened and closed': ['closed flat'],
  'thousands of Sessions used and closed': ['used flat'],
  'thousands of Sessions with a logger, closed and dropped': ['logged flat', 'true'],
  'thousands of Sessions dropped': ['dropped flat', '4500'],
  'Sessions dropped in the middle of a long answer': ['20'],
  'thousands of requests that are left, aborted and read': ['requests flat'],
  'thousands of requests through model middleware': ['middleware flat'],
  'callbacks that never settle': ['forever flat'],
};

describe('memory is flat over', { concurrency: 2 }, () => {
  for (const [name, source] of Object.entries(cases)) {
    test(name, async () => {
      assert.deepEqual(
        await run(MEASURE + source, { flags: ['--expose-gc'], env: { MALLOC_ARENA_MAX: '2' } }),
        quiet(...expected[name]),
      );
    });
  }
});
