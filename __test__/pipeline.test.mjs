// The life of a tool call through the public surface: validation, slots, locks, deadlines, quarantine, results and
// effects.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import { createSession } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { tool, generator, calls, open, turn, circular, wait } from './support/pipeline.mjs';
import { ask, folder, gate, only, results, textOf } from './support/run.mjs';

describe('arguments', () => {
  const parameters = {
    type: 'object',
    properties: {
      path: { type: 'string' },
      depth: { type: 'integer', minimum: 1, default: 3 },
      options: { type: 'object', properties: { tags: { type: 'array', items: { type: 'string' } } } },
    },
    required: ['path'],
    additionalProperties: false,
  };
  const inspect = () => {
    const seen = [];
    return { seen, inspect: tool('Inspect', async (input) => void seen.push(input) ?? 'ok', { parameters }) };
  };

  for (const [name, input, says] of [
    ['text that is no JSON', '{"path": ', /not a JSON object.*one complete JSON object/s],
    ['an array', '[1]', /an array, not an object/],
    ['a string', '"x"', /a string, not an object/],
    ['null', 'null', /null, not an object/],
    ['two objects', '{"path":"a"}{"path":"b"}', /not a JSON object/],
    ['a missing field', {}, /path/],
    ['a wrong type', { path: 5 }, /path.*string.*number 5/s],
    ['a wrong type deep inside', { path: 'a', options: { tags: ['x', 2] } }, /options\.tags.*1.*string.*number 2/s],
    ['a limit', { path: 'a', depth: 0 }, /depth.*>= 1.*0/s],
    ['a fraction for an integer', { path: 'a', depth: 1.5 }, /depth.*integer.*1\.5/s],
    ['no coercion', { path: 'a', depth: '3' }, /depth.*integer.*string/s],
    ['an unknown field', { path: 'a', more: 1 }, /more/],
  ]) {
    test(`${name} is a validation error the model can act on`, async (t) => {
      const { seen, inspect: checked } = inspect();
      const {
        results: [result],
        read,
        events,
      } = await turn(t, [{ name: 'Inspect', input }], { tools: [checked] });
      assert.equal(result.isError, true);
      assert.match(result.output, says);
      assert.equal(read[0].content, result.output);
      assert.deepEqual(seen, []);
      assert.equal(events.at(-1).content, 'done');
    });
  }

  test('blank arguments count as an empty object, defaults are filled in, valid input arrives unchanged', async (t) => {
    const { seen, inspect: checked } = inspect();
    const list = [
      { name: 'Inspect', input: { path: 'a' } },
      { name: 'Inspect', input: '{"path":"b","depth":2.0,"options":{"tags":[]}}' },
      { name: 'Blank', input: '  ' },
    ];
    const blank = tool('Blank', async (input) => void seen.push(input) ?? null, {
      parameters: { type: 'object', properties: { n: { default: null } } },
    });
    const { results: all } = await turn(t, list, { tools: [checked, blank] });
    assert.deepEqual(
      all.map((result) => result.isError),
      [false, false, false],
    );
    assert.deepEqual(seen, [{ path: 'a', depth: 3 }, { path: 'b', depth: 2, options: { tags: [] } }, { n: null }]);
  });

  test('an unknown tool, a tool of another spelling and a filtered tool are not found', async (t) => {
    const options = { tools: [tool('Known', async () => 1), tool('Off', async () => 2)], disallowedTools: ['Off'] };
    const { results: all } = await turn(t, ['Nope', 'known', 'Off', 'Known'], options);
    assert.deepEqual(
      all.map((result) => result.isError),
      [true, true, true, false],
    );
    for (const result of all.slice(0, 3))
      assert.match(result.output, /^Tool "\w+" not found; call one of the declared/);
  });

  test('lone surrogates and dangerous keys of arguments do no harm', async (t) => {
    const seen = [];
    const echo = tool('Echo', async (input) => void seen.push(input) ?? input);
    const list = ['{"a":"\\ud800"}', '{"__proto__":{"polluted":1}}', '{"a":1,"a":2}'].map((input) => ({
      name: 'Echo',
      input,
    }));
    const { results: all, events } = await turn(t, list, { tools: [echo] });
    assert.equal(events.at(-1).type, 'result');
    assert.equal({}.polluted, undefined);
    assert.equal(all.at(-1).output.a, 2);
  });
});

describe('results', () => {
  for (const [name, value, says] of [
    ['undefined', undefined, /undefined/],
    ['a function', () => 1, /function/],
    ['a BigInt', 10n, /bigint/],
    ['a symbol', Symbol('x'), /symbol/],
    ['NaN', Number.NaN, /NaN/],
    ['an undefined element', [1, undefined], /\[1\].*undefined/],
    ['a nested function', { a: { b: () => 1 } }, /\.a\.b.*function/],
    ['a Map', new Map(), /Map/],
    ['binary data', new Uint8Array(3), /Uint8Array/],
    ['an Error', new Error('x'), /Error/],
  ]) {
    test(`${name} is an error result that names it`, async (t) => {
      const {
        results: [result],
        events,
      } = await turn(t, ['Odd'], { tools: [tool('Odd', async () => value)] });
      assert.equal(result.isError, true);
      assert.match(result.output, says);
      assert.equal(events.at(-1).content, 'done');
    });
  }

  test('half characters become the replacement character wherever text crosses', async (t) => {
    const half = 'cut \ud83d';
    const tools = [
      tool('Text', async () => half),
      tool('Json', async () => ({ [half]: [half, '\\ud83d'] })),
      tool('Throws', async () => {
        throw new Error(half);
      }),
      generator('Yields', async function* () {
        yield { kind: 'progress', message: half };
        return { status: 'success', model: half };
      }),
    ];
    const provider = scriptedProvider([calls('Text', 'Json', 'Throws', 'Yields'), 'done']);
    const { session } = await open(t, provider, { tools, systemPrompt: half });
    const events = await ask(session, half);
    const [text, json, thrown, yielded] = results(events).map((result) => result.output);
    assert.equal(text, 'cut \uFFFD');
    assert.deepEqual(json, { 'cut \uFFFD': ['cut \uFFFD', '\\ud83d'] });
    assert.equal(thrown, 'Tool execution failed: cut \uFFFD');
    assert.equal(yielded, 'cut \uFFFD');
    const [system, user] = provider.requests[0].messages;
    assert.deepEqual([system.content, user.content], ['cut \uFFFD', 'cut \uFFFD']);
  });

  test('a toJSON method that changes its mind is an error result', async (t) => {
    let asked = 0;
    const fickle = { toJSON: () => (asked++ === 0 ? { a: 1 } : () => 1) };
    const {
      results: [result],
    } = await turn(t, ['Fickle'], { tools: [tool('Fickle', async () => fickle)] });
    assert.match(result.output, /turned into undefined, which is not JSON/);
  });

  test('a cycle, and a value nested without end, are error results', async (t) => {
    const cycle = {};
    cycle.self = cycle;
    let deep = {};
    for (let i = 0; i < 20_000; i++) deep = { deep };
    const tools = [tool('Cycle', async () => cycle), tool('Deep', async () => deep)];
    const { results: all } = await turn(t, ['Cycle', 'Deep'], { tools });
    for (const result of all) assert.match(result.output, /contains itself/);
  });

  test('what a tool throws is an error result with its words, whatever it throws', async (t) => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('gotcha');
      },
    });
    const thrown = {
      Error1: new TypeError('wrong size'),
      Text: 'plain text',
      Nothing: undefined,
      Null: null,
      Number: 7,
      Symbol: Symbol('s'),
      Frozen: Object.freeze(new Error('frozen')),
      Hostile: hostile,
      Getter: {
        get message() {
          throw new Error('no message');
        },
      },
    };
    const tools = Object.entries(thrown).map(([name, value]) =>
      tool(name, async () => {
        throw value;
      }),
    );
    const sync = tool('Sync', () => {
      throw new RangeError('at once');
    });
    const thenable = tool('Thenable', () => ({
      // biome-ignore lint/suspicious/noThenProperty: a thenable that throws is the case
      then() {
        throw new Error('bad then');
      },
    }));
    const names = [...Object.keys(thrown), 'Sync', 'Thenable'];
    const { results: all, events } = await turn(t, names, { tools: [...tools, sync, thenable] });
    for (const result of all) {
      assert.equal(result.isError, true, result.name);
      assert.match(result.output, /^Tool execution failed: /, result.name);
    }
    assert.match(all[0].output, /wrong size/);
    assert.match(all[1].output, /plain text/);
    assert.equal(events.at(-1).content, 'done');
  });

  test('JSON values arrive as they are; text for the model is the text or readable JSON', async (t) => {
    const values = ['text', 5, true, [1, 'two'], { a: { b: [] } }, 'lone \ud800', { lone: '\ud800' }, 2 ** 53 + 2];
    const tools = values.map((value, at) => tool(`T${at}`, async () => value));
    const { results: all, read } = await turn(
      t,
      tools.map((one) => one.name),
      { tools },
    );
    assert.ok(
      all.every((result) => !result.isError),
      JSON.stringify(all),
    );
    for (const [at, value] of values.slice(0, 5).entries()) assert.deepEqual(all[at].output, value);
    assert.equal(read[0].content, 'text');
    assert.deepEqual(JSON.parse(read[4].content), { a: { b: [] } });
    assert.equal(all[7].output, 2 ** 53 + 2);
  });

  test('a blank result says that the tool completed; a blank failure says what failed', async (t) => {
    const tools = [
      tool('Empty', async () => ''),
      tool('Null', async () => null),
      generator('Failed', async function* () {
        yield { kind: 'progress', message: 'trying' };
        return { status: 'error', model: '', error: { message: 'disk on fire', type: 'execution_error' } };
      }),
    ];
    const { results: all, read } = await turn(t, ['Empty', 'Null', 'Failed'], { tools });
    assert.deepEqual(
      read.map((message) => message.content),
      ['Execution completed', 'Execution completed', 'disk on fire'],
    );
    assert.deepEqual(
      all.map((result) => result.isError),
      [false, false, true],
    );
  });

  test('50 MB are refused by the limit that is named; the limit can be set, for own tools only', async (t) => {
    const big = tool('Big', async () => 'x'.repeat(50 << 20));
    const {
      results: [result],
      events,
    } = await turn(t, ['Big'], { tools: [big] });
    assert.match(result.output, /52428800 bytes.*10485760.*maxToolResultBytes/);
    assert.equal(events.at(-1).content, 'done');

    const root = folder(t);
    writeFileSync(join(root, 'f.txt'), 'line of a file\n'.repeat(20));
    const limited = {
      profile: 'local',
      maxToolResultBytes: 100,
      tools: [tool('Fits', async () => 'x'.repeat(100)), tool('Over', async () => 'x'.repeat(101))],
      defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    };
    const list = ['Fits', 'Over', { name: 'Read', input: { file_path: join(root, 'f.txt') } }];
    const { results: all } = await turn(t, list, limited);
    assert.deepEqual(
      all.map((one) => one.isError),
      [false, true, false],
      JSON.stringify(all),
    );
  });

  test('a result above its tool’s limit becomes a private artifact that leaves with the Session', async (t) => {
    const root = folder(t);
    const text = 'a line of a long file\n'.repeat(30_000);
    writeFileSync(join(root, 'long.txt'), text);
    const list = [{ name: 'Read', input: { file_path: join(root, 'long.txt') } }];
    const options = {
      profile: 'local',
      defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    };
    const {
      session,
      results: [result],
      read,
    } = await turn(t, list, options);
    assert.ok(result.output.length < 3_000, result.output.slice(0, 300));
    const [, path] = /^\[externalized result to (.+?)\]\n.*660000 characters/.exec(result.output);
    assert.equal(read[0].content, result.output);
    assert.ok(!path.startsWith(root), 'not in the working tree');
    if (process.platform !== 'win32') assert.equal(statSync(dirname(path)).mode & 0o77, 0);
    const record = JSON.parse(readFileSync(path, 'utf8'));
    assert.deepEqual([record.toolName, record.sessionId, record.modelContent], ['Read', session.sessionId, text]);
    assert.ok(!Number.isNaN(Date.parse(record.createdAt)));
    await session.close();
    assert.ok(!existsSync(dirname(path)));
  });

  test('a result that asks to end the request ends it, with its text as the answer', async (t) => {
    // biome-ignore lint/correctness/useYield: only its result matters
    const last = generator('Last', async function* () {
      return { status: 'success', model: 'that is all', metadata: { shouldExitLoop: true } };
    });
    const { session, provider } = await open(t, [calls('Last'), 'never'], { tools: [{ ...last }] });
    const events = await ask(session);
    assert.equal(events.at(-1).content, 'that is all');
    assert.equal(provider.requests.length, 1);
  });
});

describe('scheduling', () => {
  test('parallel calls are answered in declared order, whatever order they end in', async (t) => {
    const gates = [gate(), gate(), gate()];
    const tools = gates.map(({ opened }, at) =>
      tool(`T${at}`, async () => {
        await opened;
        gates[at - 1]?.open();
        return at;
      }),
    );
    gates[2].open();
    const { read, events } = await turn(t, ['T0', 'T1', 'T2'], { tools });
    assert.deepEqual(
      read.map((message) => message.content),
      ['0', '1', '2'],
    );
    assert.deepEqual(
      only(events, 'tool_result').map((event) => event.output),
      [2, 1, 0],
    );
  });

  test('plan mode runs calls one after the other', async (t) => {
    let running = 0;
    const look = tool('Look', async () => {
      assert.equal(running++, 0);
      await wait(2);
      return --running;
    });
    await turn(t, ['Look', 'Look', 'Look'], { tools: [look], permissionMode: 'plan' });
  });

  for (const [kind, limit] of [
    ['readonly', 10],
    ['write', 10],
    ['execute', 3],
  ]) {
    test(`${limit} ${kind} calls run at once by default, and as many as an option says`, async (t) => {
      for (const most of [limit, 2]) {
        let running = 0;
        let peak = 0;
        const busy = tool(
          'Busy',
          async () => {
            peak = Math.max(peak, ++running);
            await wait(4);
            return --running;
          },
          { kind },
        );
        const options = { tools: [busy], permissionMode: 'yolo' };
        if (most !== limit) options.toolConcurrency = { [kind]: most };
        await turn(t, Array(16).fill('Busy'), options);
        assert.equal(peak, most);
      }
    });
  }

  test('a full queue refuses at once and says so; the rest runs', async (t) => {
    const busy = tool('Busy', async () => (await wait(5)) ?? null, { kind: 'execute' });
    const options = { tools: [busy], permissionMode: 'yolo', toolConcurrency: { execute: 1, queue: 2 } };
    const { results: all } = await turn(t, Array(5).fill('Busy'), options);
    assert.deepEqual(
      all.map((result) => result.isError),
      [false, false, false, true, true],
    );
    assert.match(all[3].output, /2 calls are already waiting.*fewer tools/);
  });

  test('calls on one file exclude each other unless they only read, however the path is spelled', async (t) => {
    for (const [kind, most] of [
      ['write', 1],
      ['readonly', 3],
    ]) {
      let running = 0;
      let peak = 0;
      const touch = tool(
        'Touch',
        async () => {
          peak = Math.max(peak, ++running);
          await wait(4);
          return --running;
        },
        { kind },
      );
      const list = ['/w/a.txt', '/w/./a.txt', '/w/b/../a.txt'].map((file_path) => ({
        name: 'Touch',
        input: { file_path },
      }));
      const yes = async () => ({ behavior: 'allow' });
      const { results: all } = await turn(t, list, { tools: [touch], permissionHandler: yes });
      assert.deepEqual(all.filter((result) => !result.isError).length, 2, 'a path that climbs is denied');
      assert.equal(peak, Math.min(most, 2), kind);
    }
  });

  test('an abort empties the queue: what waited never runs and every call has its result', async (t) => {
    const started = gate();
    let ran = 0;
    const hold = tool(
      'Hold',
      (_, { signal }) => {
        ran++;
        started.open();
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      { kind: 'execute' },
    );
    const turns = [calls('Hold', 'Hold', 'Hold', 'Hold', 'Hold'), 'next'];
    const { session, provider } = await open(t, turns, {
      tools: [hold],
      permissionMode: 'yolo',
      toolConcurrency: { execute: 1 },
    });
    const asking = ask(session);
    await started.opened;
    await session.abort();
    const events = await asking;
    assert.equal(ran, 1);
    assert.ok(events.every((event) => event.type !== 'error' && event.type !== 'result'));
    assert.equal(textOf(await ask(session, 'go on')), 'next');
    const read = provider.requests[1].messages.filter((message) => message.role === 'tool');
    assert.equal(read.length, 5);
    for (const { content } of read) assert.match(content, /abort|cancel/i);
  });
});

describe('time limits', () => {
  test('a call that takes too long is told by its signal and reported as a timeout', async (t) => {
    let reason;
    const slow = tool(
      'Slow',
      (_, { signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reason = signal.reason;
            reject(new Error('stopped'));
          });
        }),
    );
    const {
      results: [result],
      events,
    } = await turn(t, ['Slow'], { tools: [slow], toolTimeoutMs: 30 });
    assert.equal(result.output, 'Tool execution timeout after 30ms');
    assert.equal(reason.name, 'AbortError');
    assert.equal(events.at(-1).content, 'done');
  });

  test('a callback that ignores its signal shuts the Session until it settles, then everything works again', async (t) => {
    const release = gate();
    const deaf = tool('Deaf', () => release.opened);
    const fine = tool('Fine', async () => 'ok');
    const turns = [calls('Deaf'), 'one', calls('Fine'), 'two', calls('Fine'), 'three'];
    const { session } = await open(t, turns, { tools: [deaf, fine], toolTimeoutMs: 20 });
    const first = await ask(session);
    assert.match(results(first)[0].output, /timeout/i);
    const [refused] = results(await ask(session));
    assert.match(refused.output, /Deaf is still cleaning up; refusing to start another tool/);
    await assert.rejects(session.close(), { code: 'SESSION_BUSY' });
    assert.equal(session.isClosed, false);
    release.open('late');
    await wait(20);
    const [ran] = results(await ask(session));
    assert.equal(ran.output, 'ok');
    await session.close();
    assert.equal(session.isClosed, true);
  });

  for (const port of ['permission', 'confirmation']) {
    test(`a ${port} callback that ignores an abort shuts the Session in the same way`, async (t) => {
      const asked = gate();
      const release = gate();
      const deaf = () => {
        asked.open();
        return release.opened;
      };
      const options =
        port === 'permission' ? { permissionHandler: deaf } : { confirmationHandler: { requestConfirmation: deaf } };
      const run = tool('Run', async () => 'ran', { kind: 'execute' });
      const { session } = await open(t, [calls('Run'), calls('Run'), 'x', calls('Run'), 'y'], {
        tools: [run],
        ...options,
      });
      const asking = ask(session);
      await asked.opened;
      await session.abort();
      await asking;
      const [refused] = results(await ask(session));
      assert.match(refused.output, new RegExp(`a ${port} callback is still cleaning up`));
      release.open(port === 'permission' ? { behavior: 'allow' } : { approved: true });
      await wait(20);
      assert.equal(results(await ask(session))[0].output, 'ran');
    });
  }

  test('a wrong limit is refused when the Session opens', async () => {
    for (const [option, value] of [
      ['toolTimeoutMs', 0],
      ['toolTimeoutMs', 1.5],
      ['toolTimeoutMs', 2 ** 31],
      ['toolTimeoutMs', Number.NaN],
      ['maxToolResultBytes', -1],
      ['toolConcurrency', { execute: 0 }],
      ['maxTurns', 0],
      ['confirmationFallback', 'maybe'],
      ['permissionMode', 'root'],
      ['tools', null],
      ['tools', 'Read'],
      ['allowedTools', 'Read'],
      ['model', ''],
      ['provider', null],
      ...[
        'model',
        'systemPrompt',
        'allowedTools',
        'permissionMode',
        'maxTurns',
        'providerOptions',
        'outputFormat',
      ].flatMap((option) => [1n, () => {}, Symbol('s'), Number.NaN, new Map()].map((value) => [option, value])),
      ...['defaultContext', 'providerOptions', 'outputFormat'].flatMap((option) =>
        ['x', 5, true, []].map((value) => [option, value]),
      ),
      ['defaultContext', { environment: { A: () => {} } }],
      ['providerOptions', circular()],
      ['confirmationHandler', {}],
      ['confirmationHandler', () => {}],
      ['confirmationHandler', null],
    ]) {
      const options = { provider: scriptedProvider([]), model: 'm', [option]: value };
      await assert.rejects(
        createSession(options),
        { code: 'CONFIG_ERROR', name: 'ConfigError' },
        `${option} ${typeof value}`,
      );
    }
  });
});

describe('yields', () => {
  const say = (content, role = 'user') => ({
    kind: 'effect',
    effect: { type: 'newMessages', messages: [{ role, content }] },
  });

  test('progress, messages and effects become events in order; messages of successful calls follow all results', async (t) => {
    const talk = (name, fails) =>
      generator(name, async function* () {
        yield { kind: 'progress', message: 'half', completed: 1, total: 2, resumeToken: 'r' };
        yield { kind: 'message', content: { summary: 'hello', detail: { a: 1 } } };
        yield say(`from ${name}`);
        const error = { message: 'no', type: 'execution_error' };
        return fails ? { status: 'error', model: 'no', error } : { status: 'success', model: 'yes' };
      });
    const { session, provider } = await open(t, [calls('Good', 'Bad'), 'x'], {
      tools: [talk('Good'), talk('Bad', true)],
    });
    const events = (await ask(session)).filter((event) => event.name === 'Good').map((event) => event.type);
    assert.deepEqual(events, ['tool_use', 'tool_progress', 'tool_message', 'tool_new_messages', 'tool_result']);
    assert.deepEqual(
      provider.requests[1].messages.slice(2).map(({ role, content }) => `${role}: ${content}`),
      ['tool: yes', 'tool: no', 'user: from Good'],
    );
  });

  test('messages that would break the pairing of calls and results are left out', async (t) => {
    const rogue = generator('Rogue', async function* () {
      const call = { id: 'x', type: 'function', function: { name: 'Rogue', arguments: '{}' } };
      yield say('kept', 'system');
      yield {
        kind: 'effect',
        effect: {
          type: 'newMessages',
          messages: [
            { role: 'tool', tool_call_id: 'nobody', name: 'Rogue', content: 'orphan' },
            { role: 'assistant', content: '', tool_calls: [call] },
            { role: 'assistant', content: 'also kept' },
          ],
        },
      };
      return { status: 'success', model: 'done' };
    });
    const { session, provider } = await open(t, [calls('Rogue'), 'x', 'y'], { tools: [rogue] });
    assert.equal((await ask(session)).at(-1).type, 'result');
    assert.equal((await ask(session)).at(-1).content, 'y');
    const injected = provider.requests[1].messages.slice(3).map((message) => message.content);
    assert.deepEqual(injected, ['kept', 'also kept']);
  });

  test('a yield or a result that is none of the protocol fails the call, and the generator is closed', async (t) => {
    let closed = 0;
    const odd = (name, item, result) =>
      generator(name, async function* () {
        try {
          yield item;
          return result;
        } finally {
          closed++;
        }
      });
    const good = { kind: 'progress' };
    const tools = [
      odd('Kind', { kind: 'dance' }, { status: 'success', model: 'x' }),
      odd('Fn', { kind: 'progress', data: () => 1 }, { status: 'success', model: 'x' }),
      odd('Status', good, { status: 'fine' }),
      odd('Nothing', good, undefined),
      odd('NoType', good, { status: 'error', model: 'x', error: {} }),
      { ...tool('NoGenerator', async () => 1), execute: async () => 1 },
    ];
    const { results: all, events } = await turn(
      t,
      tools.map((one) => one.name),
      { tools },
    );
    for (const result of all) assert.equal(result.isError, true, result.name);
    assert.equal(closed, 5);
    assert.equal(events.at(-1).content, 'done');
  });
});
