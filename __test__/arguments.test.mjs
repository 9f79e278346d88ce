// Arguments as models really send them: never run with the wrong type, and say what was wrong. And many calls under one
// signal of the caller.

import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { describe, test } from 'node:test';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import Type from 'typebox';
import { calls, open, tool, turn } from './support/pipeline.mjs';
import { ask, folder, gate, results } from './support/run.mjs';

describe('PL03: JSON inside strings', () => {
  const parameters = Type.Object(
    {
      paths: Type.Optional(Type.Array(Type.String())),
      limit: Type.Optional(Type.Integer()),
      all: Type.Optional(Type.Boolean()),
      ratio: Type.Optional(Type.Number()),
      deep: Type.Optional(Type.Object({ limit: Type.Integer() })),
      todos: Type.Optional(Type.Array(Type.Object({ text: Type.String() }))),
      note: Type.Optional(Type.String()),
    },
    { additionalProperties: false },
  );

  /** Calls the tool with this text; what it was given, and what the model was told. */
  async function call(t, text, options = {}) {
    const seen = [];
    const strict = tool('Strict', async (input) => void seen.push(input) ?? 'ran', { parameters });
    const {
      results: [result],
      read,
    } = await turn(t, [{ name: 'Strict', input: text }], { tools: [strict], ...options });
    assert.equal(result.isError, seen.length === 0, 'an error exactly when it did not run');
    return { seen, told: read[0].content };
  }

  for (const [text, ...says] of [
    [
      '{"paths":"[\\"a\\"]","limit":"5","all":"true"}',
      /paths must be array, got string "\[\\"a\\"\]"/,
      /limit must be integer, got string "5"/,
      /all must be boolean, got string "true"/,
    ],
    ['{"paths":"[\\"a\\"]"}', /paths must be array, got string/],
    ['{"paths":["a",1]}', /paths\.1 must be string, got number 1/],
    ['{"paths":{"0":"a"}}', /paths must be array, got object \{"0":"a"\}/],
    ['{"limit":"5"}', /limit must be integer, got string "5"/],
    ['{"limit":"5abc"}', /limit must be integer, got string "5abc"/],
    ['{"limit":""}', /limit must be integer, got string ""/],
    ['{"limit":null}', /limit must be integer, got null/],
    ['{"limit":5.5}', /limit must be integer, got number 5\.5/],
    ['{"limit":true}', /limit must be integer, got boolean true/],
    ['{"limit":[5]}', /limit must be integer, got array \[5\]/],
    ['{"deep":{"limit":"5"}}', /deep\.limit must be integer, got string "5"/],
    ['{"deep":"{\\"limit\\":5}"}', /deep must be object, got string/],
    ['{"all":"true"}', /all must be boolean, got string "true"/],
    ['{"all":1}', /all must be boolean, got number 1/],
    ['{"note":5}', /note must be string, got number 5/],
    ['{"limit":1e400}', /number out of range/],
    ['{"ratio":-1e400}', /number out of range/],
    ['{"ratio":NaN}', /not a JSON object/],
    ['{"more":1}', /must not have additional properties more/],
    ['{"__proto__":{"limit":1}}', /must not have additional properties __proto__/],
    ['{"constructor":1}', /must not have additional properties constructor/],
    ['{"toString":1}', /must not have additional properties toString/],
    ['{"limit":5,"limit":"5"}', /limit must be integer, got string "5"/],
    ['{"limit":5,"l\\u0069mit":"5"}', /limit must be integer, got string "5"/],
    ['{"limit":{"$serde_json::private::RawValue":"5"}}', /limit must be integer, got object/],
    ['{"todos":"[{\\"text\\":1}]"}', /todos\.0\.text must be string, got number 1/],
    ['{"todos":"none"}', /todos must be array, got string "none"/],
    ['{"todos":"{}"}', /todos must be array, got string/],
  ]) {
    test(`${text} does not run, and the model is told why`, async (t) => {
      const { seen, told } = await call(t, text);
      assert.deepEqual(seen, []);
      for (const one of says) assert.match(told, one);
    });
  }

  for (const [text, input] of [
    ['{"limit":5.0}', { limit: 5 }],
    ['{"limit":5e0}', { limit: 5 }],
    ['{"limit":-0}', { limit: -0 }],
    ['{"ratio":-0.0}', { ratio: -0 }],
    ['{"ratio":1e-400}', { ratio: 0 }],
    ['{"limit":"5","limit":5}', { limit: 5 }],
    ['{"all":1,"limit":5,"all":true}', { all: true, limit: 5 }],
    ['{"note":"[1]"}', { note: '[1]' }],
    ['{"note":""}', { note: '' }],
    ['{"todos":"[{\\"text\\":\\"a\\"}]"}', { todos: [{ text: 'a' }] }],
    ['{"todos":[{"text":"a"}]}', { todos: [{ text: 'a' }] }],
    ['', {}],
    [' {} ', {}],
  ]) {
    test(`${text === '' ? 'no text' : text} runs with what it says`, async (t) => {
      const { seen } = await call(t, text);
      assert.deepEqual(seen, [input]);
    });
  }

  test('hooks and handlers see the same input as the tool', async (t) => {
    const seen = [];
    const { seen: ran } = await call(t, '{"todos":"[{\\"text\\":\\"a\\"}]","limit":"5","limit":5.0}', {
      hooks: { PreToolUse: [async ({ toolInput }) => void seen.push(toolInput) ?? { action: 'continue' }] },
      permissionHandler: async ({ input }) => void seen.push(input) ?? { behavior: 'allow' },
    });
    const input = { todos: [{ text: 'a' }], limit: 5 };
    assert.deepEqual([...seen, ...ran], [input, input, input]);
  });

  test('what hooks and handlers write is checked the same', async (t) => {
    for (const options of [
      { hooks: { PreToolUse: [async () => ({ action: 'continue', modifiedInput: { limit: '5' } })] } },
      { permissionHandler: async () => ({ behavior: 'allow', updatedInput: { limit: '5' } }) },
    ]) {
      const { seen, told } = await call(t, '{"limit":5}', options);
      assert.deepEqual(seen, []);
      assert.match(told, /limit must be integer, got string "5"/);
    }
  });

  test('a __proto__ that the schema allows is a property like any other', async (t) => {
    const seen = [];
    const loose = tool('Loose', async (input) => void seen.push(input) ?? 'ran', { parameters: { type: 'object' } });
    const input = '{"__proto__":{"admin":true},"a":1}';
    await turn(t, [{ name: 'Loose', input }], { tools: [loose] });
    assert.equal(Object.getPrototypeOf(seen[0]), Object.prototype);
    assert.deepEqual(Object.keys(seen[0]), ['__proto__', 'a']);
    assert.equal(seen[0].admin, undefined);
    assert.equal({}.admin, undefined);
  });

  test('a built-in tool is as strict, and takes 2.0 for 2', async (t) => {
    const root = folder(t);
    const file_path = join(root, 'a.txt');
    writeFileSync(file_path, 'one\ntwo\nthree\n');
    const defaultContext = { capabilities: { filesystem: { roots: [root], cwd: root } } };
    const read = (limit) => ({ name: 'Read', input: `{"file_path":${JSON.stringify(file_path)},"limit":${limit}}` });
    const { results: all } = await turn(t, [read('"2"'), read('2.0'), read('2.5'), read('1e400')], {
      profile: 'local',
      defaultContext,
    });
    assert.match(all[0].output, /limit must be integer, got string "2"/);
    assert.equal(all[1].isError, false, JSON.stringify(all[1].output));
    assert.match(all[2].output, /limit must be integer, got number 2\.5/);
    assert.match(all[3].output, /number out of range/);
  });
});

describe('PL04: one signal for many calls', () => {
  const TURNS = 40;
  const EACH = 50;

  test('2,000 calls, and 200 aborted ones, leave no listener and no warning', async (t) => {
    const warnings = [];
    const warn = (warning) => warnings.push(warning);
    process.on('warning', warn);
    t.after(() => process.off('warning', warn));
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = () => getEventListeners(signal, 'abort').length;
    signal.addEventListener('abort', () => {});
    const before = listeners();
    let ran = 0;
    // Each call looks at its own signal, as a tool that can be stopped does.
    const count = tool('Count', async (_, context) => {
      context.signal.addEventListener('abort', () => {});
      return ++ran;
    });
    const many = calls(...Array.from({ length: EACH }, () => 'Count'));
    const { session } = await open(t, [...Array.from({ length: TURNS }, () => many), 'done'], {
      tools: [count],
      toolConcurrency: { readonly: EACH },
    });
    await ask(session, 'go', { send: { signal } });
    assert.equal(ran, TURNS * EACH);
    assert.equal(listeners(), before);

    // The same signal over several Sessions and requests, and then it fires under 200 calls.
    const hanging = [];
    for (let i = 0; i < 4; i++) {
      const started = gate();
      let running = 0;
      const hang = tool('Hang', (_, context) => {
        if (++running === EACH) started.open();
        return new Promise((resolve) => context.signal.addEventListener('abort', () => resolve('stopped')));
      });
      const one = await open(t, scriptedProvider([calls(...Array.from({ length: EACH }, () => 'Hang')), 'done']), {
        tools: [hang],
        toolConcurrency: { readonly: EACH },
      });
      hanging.push({ session: one.session, events: ask(one.session, 'go', { send: { signal } }) });
      await started.opened;
    }
    assert.equal(listeners(), before + hanging.length);
    controller.abort();
    for (const { events } of hanging) assert.equal(results(await events).length, EACH, 'every call has its result');
    // The test's own listener stays; a signal that has fired drops those that were added for once.
    assert.ok(listeners() <= before);
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
    // A Session goes on after an abort.
    const again = hanging[0].session;
    await assert.doesNotReject(ask(again, 'again'));
  });
});
