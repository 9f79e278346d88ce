// The contract of tools, sentence by sentence: defineTool, what may be left out, capabilities, results, updates.
// docs/parity.md names the test of each sentence.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import Type from 'typebox';
import * as sdk from '@blade-ai/agent-sdk';
import {
  collectToolExecution,
  createAgent,
  createSession,
  defineTool,
  ToolKind,
  ToolSideEffect,
} from '@blade-ai/agent-sdk';
import { getBuiltinTools, MemoryManager } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { calls, generator, open, tool, turn } from './support/pipeline.mjs';
import { ask, folder, only, results } from './support/run.mjs';

const search = async (query, limit) => [`${query} one`, `${query} two`].slice(0, limit);
const lookupRecord = async (id) => ({ id, name: `record ${id}` });

const searchDocs = defineTool({
  name: 'SearchDocs',
  description: 'Search the documentation index',
  parameters: Type.Object({
    query: Type.String(),
    limit: Type.Optional(Type.Number()),
  }),
  async execute(params) {
    const results = await search(params.query, params.limit ?? 10);
    return { results, count: results.length };
  },
});

const lookup = defineTool({
  name: 'Lookup',
  description: 'Look up one record by id',
  parameters: Type.Object({ id: Type.String() }),
  async execute({ id }) {
    return await lookupRecord(id);
  },
});

const delegated = defineTool({
  name: 'Delegate',
  description: 'Delegate a task',
  parameters: Type.Object({ prompt: Type.String() }),
  services: ['subagentRegistry'],
  requiresRuntime: true,
  async execute({ prompt }, context) {
    await context.runtime.assertExecutionLease();
    return { prompt, agents: context.subagentRegistry.getAllNames() };
  },
});

/** The results of one turn of calls as their observer is told, in declared order, and what else happened. */
async function settled(t, list, tools, options = {}) {
  const told = new Map();
  const toolLifecycle = { onToolSettled: async ({ toolCallId, result }) => void told.set(toolCallId, result) };
  const seen = await turn(t, list, { tools, permissionMode: 'yolo', toolLifecycle, ...options });
  return { ...seen, told: seen.results.map(({ id }) => told.get(id)) };
}

describe('defineTool', () => {
  test('defineTool() is the only custom-tool authoring API of the root entry', () => {
    const aboutTools = Object.keys(sdk).filter((name) => /tool/i.test(name) && !/Id$/.test(name));
    assert.deepEqual(aboutTools.sort(), [
      'ToolErrorType',
      'ToolExecutionError',
      'ToolKind',
      'ToolSideEffect',
      'collectToolExecution',
      'completeToolExecution',
      'createToolLimiter',
      'defineTool',
    ]);
  });

  test('the returned ToolDefinition is accepted directly by Agent and Session', async (t) => {
    const input = { query: 'blade', limit: 1 };
    const { results: inSession } = await turn(t, [{ name: 'SearchDocs', input }], {
      tools: [searchDocs],
      permissionMode: 'yolo',
    });
    const agent = await createAgent({
      provider: scriptedProvider([calls({ name: 'SearchDocs', input }), 'done']),
      model: 'm',
      tools: [searchDocs],
      advanced: { permission: 'bypass-permissions' },
    });
    t.after(() => agent.close());
    const response = await agent.send('go');
    const inAgent = [];
    response.on('tool_result', (event) => void inAgent.push(event));
    assert.equal(await response.text(), 'done');
    for (const [result] of [inSession, inAgent]) {
      assert.deepEqual(result.output, { results: ['blade one'], count: 1 });
    }
  });

  test('every tool executes as AsyncGenerator<ToolYield, ToolResult>', async () => {
    for (const definition of [searchDocs, ...(await getBuiltinTools())]) {
      const execution = definition.execute({}, {});
      for (const method of ['next', 'return', 'throw', Symbol.asyncIterator]) {
        assert.equal(typeof execution[method], 'function', `${definition.name}: ${String(method)}`);
      }
    }
    const execution = searchDocs.execute({ query: 'x' }, {});
    const { done, value } = await execution.next();
    assert.deepEqual([done, value.status], [true, 'success']);
  });

  test('the returned JSON value becomes both model and data on the internal success result', async (t) => {
    const values = ['text', 7, true, [1, 'two', null], { a: { b: [] } }];
    const tools = values.map((value, at) => tool(`T${at}`, async () => value));
    const { told } = await settled(
      t,
      tools.map(({ name }) => name),
      tools,
    );
    for (const [at, value] of values.entries()) {
      const { status, model, data } = told[at];
      assert.deepEqual([status, model, data], ['success', value, value]);
      assert.deepEqual(await collectToolExecution(tools[at].execute({}, {})), {
        status: 'success',
        model: value,
        data: value,
      });
    }
  });

  test('throw an error to report failure', async (t) => {
    const failing = tool('Fails', async () => {
      throw Object.assign(new Error('the index is gone'), { code: 'ENOENT' });
    });
    const { told, read, events } = await settled(t, ['Fails'], [failing]);
    const [{ status, error }] = told;
    assert.deepEqual(
      [status, error.type, error.message, error.code],
      ['error', 'execution_error', 'the index is gone', 'ENOENT'],
    );
    assert.match(read[0].content, /the index is gone/);
    assert.equal(events.at(-1).subtype, 'success', 'the request goes on');
  });

  test('result meaning never depends on object shape: a returned ToolResult is data', async (t) => {
    const shapes = [
      { status: 'error', model: 'm', error: { message: 'x', type: 'execution_error' } },
      { status: 'success', model: 'hidden', metadata: { shouldExitLoop: true } },
      { kind: 'effect', effect: { type: 'newMessages', messages: [{ role: 'user', content: 'injected' }] } },
    ];
    const tools = shapes.map((shape, at) => tool(`T${at}`, async () => shape));
    const names = tools.map(({ name }) => name);
    const { told, events, provider } = await settled(t, names, tools);
    for (const [at, shape] of shapes.entries()) {
      assert.deepEqual([told[at].status, told[at].model, told[at].data], ['success', shape, shape]);
    }
    assert.deepEqual(only(events, 'tool_new_messages'), []);
    assert.equal(provider.requests.length, 2, 'the request did not end with the tools');
  });

  test('result meaning never depends on iterator methods: a returned generator is no JSON and never runs', async (t) => {
    let ran = false;
    async function* yielding() {
      ran = true;
      yield { kind: 'progress' };
      return { status: 'success', model: 'from the generator' };
    }
    function* plain() {
      ran = true;
      yield 1;
    }
    const iterators = {
      AsyncGenerator: yielding,
      InPromise: async () => yielding(),
      Generator: async () => plain(),
      Inside: async () => ({ list: [plain()] }),
      WithMethods: async () => ({ next: () => ({ done: true }), [Symbol.asyncIterator]: yielding }),
    };
    const tools = Object.entries(iterators).map(([name, execute]) => tool(name, execute));
    const { told, events } = await settled(t, Object.keys(iterators), tools);
    for (const [at, name] of Object.keys(iterators).entries()) {
      assert.equal(told[at].status, 'error', name);
      assert.match(told[at].error.message, /which is not JSON/, name);
    }
    assert.equal(ran, false);
    assert.deepEqual(only(events, 'tool_progress'), []);
  });

  test('the TypeBox schema is the single source of truth for validation and the model-facing JSON Schema', async (t) => {
    let ran = 0;
    const counted = defineTool({ ...searchDocs, execute: async () => ++ran });
    const list = [
      { name: 'SearchDocs', input: { query: 'ok', limit: 2 } },
      { name: 'SearchDocs', input: { query: 'ok', limit: 'two' } },
      { name: 'SearchDocs', input: { limit: 2 } },
    ];
    const { told, provider } = await settled(t, list, [counted]);
    assert.deepEqual(
      told.map(({ status, error }) => error?.type ?? status),
      ['success', 'validation_error', 'validation_error'],
    );
    assert.equal(ran, 1);
    const [declared] = provider.requests[0].tools;
    assert.deepEqual(declared, {
      name: 'SearchDocs',
      description: 'Search the documentation index',
      parameters: JSON.parse(JSON.stringify(searchDocs.parameters)),
    });
  });

  test('heterogeneous definitions share a list and each gets the arguments of its own schema', async (t) => {
    const { told } = await settled(
      t,
      [
        { name: 'Lookup', input: { id: '7' } },
        { name: 'SearchDocs', input: { query: 'q', limit: 1 } },
      ],
      [searchDocs, lookup],
    );
    assert.deepEqual(
      told.map(({ data }) => data),
      [
        { id: '7', name: 'record 7' },
        { results: ['q one'], count: 1 },
      ],
    );
  });
});

describe('What you can omit', () => {
  const minimal = { name: 'Min', description: 'd', parameters: Type.Object({}), execute: async () => 'ran' };

  test('only name, description, parameters, and execute are required', async (t) => {
    const { told } = await settled(t, ['Min'], [defineTool(minimal)]);
    assert.equal(told[0].data, 'ran');
    for (const missing of Object.keys(minimal)) {
      const { [missing]: _, ...rest } = minimal;
      await assert.rejects(
        async () => createSession({ provider: scriptedProvider([]), model: 'm', tools: [defineTool(rest)] }),
        (error) => error instanceof TypeError || error.code === 'TOOL_DEFINITION_ERROR',
        missing,
      );
    }
  });

  /** What a declaration is taken for at each place that asks. */
  async function declared(t, more) {
    const seen = [];
    await turn(t, ['Min'], {
      tools: [defineTool({ ...minimal, ...more })],
      permissionHandler: async ({ toolKind, toolMeta }) => {
        seen.push(['permission', toolKind, toolMeta.sideEffect]);
        return { behavior: 'allow' };
      },
      toolLifecycle: {
        onToolScheduled: async ({ sideEffect }) => {
          seen.push(['scheduled', sideEffect]);
          return { onExecutionStarted: async (event) => void seen.push(['started', event.sideEffect]) };
        },
      },
    });
    return seen;
  }

  test('when sideEffect is omitted the tool counts as non_idempotent', async (t) => {
    assert.deepEqual(await declared(t, {}), [
      ['scheduled', 'non_idempotent'],
      ['permission', 'execute', 'non_idempotent'],
      ['started', 'non_idempotent'],
    ]);
  });

  test('a declared sideEffect is what every boundary is told', async (t) => {
    for (const sideEffect of Object.values(ToolSideEffect)) {
      assert.deepEqual(await declared(t, { sideEffect }), [
        ['scheduled', sideEffect],
        ['permission', 'execute', sideEffect],
        ['started', sideEffect],
      ]);
    }
  });

  test('kind and sideEffect may both be omitted; kind takes the ToolKind constants', async (t) => {
    for (const kind of [ToolKind.ReadOnly, ToolKind.Write, ToolKind.Execute]) {
      const [, permission] = await declared(t, { kind });
      assert.deepEqual(permission, ['permission', kind, 'non_idempotent']);
    }
    await assert.rejects(
      createSession({
        provider: scriptedProvider([]),
        model: 'm',
        tools: [defineTool({ ...minimal, kind: 'delete' })],
      }),
      { code: 'TOOL_DEFINITION_ERROR', message: /delete/ },
    );
  });

  test('there is no Zod conversion: a Zod schema is refused and not taken for one that accepts anything', () => {
    const zod3 = { _def: { typeName: 'ZodObject' } };
    const zod4 = Object.defineProperty({ def: { type: 'object' } }, '_zod', { value: {}, enumerable: false });
    for (const parameters of [zod3, zod4]) {
      assert.throws(() => defineTool({ ...minimal, parameters }), { name: 'TypeError', message: /Zod/ });
    }
  });
});

describe('Capabilities on demand', () => {
  const memory = new MemoryManager({
    save: async (input) => ({ ...input, updatedAt: 0 }),
    get: async () => undefined,
    list: async () => [],
    delete: async () => {},
  });

  /** The context a definition is run with. */
  async function contextOf(t, more, options = {}) {
    let seen;
    const look = async (_, context) => {
      seen = context;
      return null;
    };
    const definition = tool('Look', look, more);
    await turn(t, ['Look'], { tools: [definition], memoryManager: memory, ...options });
    return seen;
  }

  test('the execute context exposes only declared services', async (t) => {
    const declaring = await contextOf(t, { services: ['memoryManager'] });
    assert.equal(declaring.memoryManager, memory);
    assert.equal('discoverableCatalog' in declaring, false);
    const both = await contextOf(t, { services: ['memoryManager', 'discoverableCatalog'] });
    assert.equal(both.memoryManager, memory);
    assert.equal(typeof both.discoverableCatalog.list, 'function');
    const ordinary = await contextOf(t, {});
    for (const name of ['memoryManager', 'discoverableCatalog', 'subagentRegistry', 'mcpRegistry']) {
      assert.equal(name in ordinary, false, `undeclared services are not exposed: ${name}`);
    }
  });

  test('requiresRuntime: true requests execution lease and fencing; ordinary tools receive no runtime property', async (t) => {
    const { runtime } = await contextOf(t, { requiresRuntime: true });
    assert.equal(await runtime.assertExecutionLease(), undefined);
    assert.equal(await runtime.runWithExecutionLease(async () => 'inside'), 'inside');
    await assert.rejects(
      runtime.runWithExecutionLease(async () => Promise.reject(new RangeError('own'))),
      RangeError,
    );
    assert.equal(runtime.executionFence, undefined, 'a Session without a lease has no fence');
    for (const more of [{}, { requiresRuntime: false }]) {
      assert.equal('runtime' in (await contextOf(t, more)), false);
    }
  });

  test('if a Session lacks any declared service, it does not register the tool', async (t) => {
    const needy = tool('Needy', async () => 'ran', { services: ['memoryManager', 'subagentRegistry'] });
    const { provider, results: list } = await turn(t, ['Needy', 'Delegate'], {
      tools: [needy, delegated, tool('Other', async () => 1)],
      memoryManager: memory,
      permissionMode: 'yolo',
    });
    assert.deepEqual(
      provider.requests[0].tools.map(({ name }) => name),
      ['Other'],
    );
    for (const { isError } of list) assert.equal(isError, true);
  });

  test('the tool of the guide runs with the services and the runtime it asked for', async () => {
    const asserted = [];
    const result = await collectToolExecution(
      delegated.execute(
        { prompt: 'look' },
        {
          runtime: { assertExecutionLease: async () => void asserted.push('lease') },
          subagentRegistry: { getAllNames: () => ['scout'] },
        },
      ),
    );
    assert.deepEqual(result.data, { prompt: 'look', agents: ['scout'] });
    assert.deepEqual(asserted, ['lease']);
  });
});

/** A tool in the runtime protocol that yields and returns what it is given. */
const runtimeTool = (name, yields, result, more) => ({
  ...generator(name, async function* () {
    yield* yields;
    return result;
  }),
  ...more,
});

describe('ToolResult', () => {
  test('model is written back to model context; display and data are not', async (t) => {
    const result = {
      status: 'success',
      model: { forModel: 1 },
      display: { summary: 'for people', detail: [1] },
      data: { forCaller: 2 },
      metadata: { own: 'fact' },
    };
    const { told, read, results: list } = await settled(t, ['T'], [runtimeTool('T', [], result)]);
    assert.equal(read[0].content, '{"forModel":1}');
    assert.deepEqual(list[0].output, { forModel: 1 });
    assert.deepEqual(list[0].display, { summary: 'for people', detail: [1] });
    assert.deepEqual(told[0].data, { forCaller: 2 });
    assert.equal(told[0].metadata.own, 'fact');
    assert.equal(JSON.stringify(read).includes('for people'), false);
    assert.equal(JSON.stringify(read).includes('forCaller'), false);
  });

  test('data is optional and must be a strict JSON value', async (t) => {
    const cycle = {};
    cycle.self = cycle;
    const bad = [() => 1, 1n, Number.NaN, [undefined], { deep: [Number.POSITIVE_INFINITY] }, new Map([[1, 2]]), cycle];
    const good = [undefined, null, false, 0, '', [], { a: [null] }];
    const of = (data, at) => runtimeTool(`T${at}`, [], { status: 'success', model: 'm', data });
    const tools = [...bad, ...good].map(of);
    const names = tools.map(({ name }) => name);
    const { told } = await settled(t, names, tools);
    for (const at of bad.keys()) {
      assert.equal(told[at].status, 'error', `bad[${at}]`);
      assert.match(told[at].error.message, /data.*not JSON/);
    }
    for (const [at, data] of good.entries()) {
      assert.equal(told[bad.length + at].status, 'success');
      assert.deepEqual(told[bad.length + at].data, data);
    }
  });

  test("failed results require both status: 'error' and error", async (t) => {
    const error = { message: 'no route', type: 'network_error', code: 'EHOSTUNREACH', details: { host: 'h' } };
    const tools = [
      runtimeTool('Both', [], { status: 'error', model: 'm', error }),
      runtimeTool('NoError', [], { status: 'error', model: 'm' }),
      runtimeTool('NoStatus', [], { model: 'm', error }),
      runtimeTool('NoType', [], { status: 'error', model: 'm', error: { message: 'x' } }),
    ];
    const names = tools.map(({ name }) => name);
    const { told } = await settled(t, names, tools);
    assert.deepEqual(told[0].error, error);
    for (const at of [1, 2, 3]) {
      assert.deepEqual([told[at].status, told[at].error.type], ['error', 'execution_error'], names[at]);
      assert.match(told[at].error.message, /ToolResult|error|type/);
    }
  });

  test('large-result artifact persistence applies to model, not data', async (t) => {
    const long = 'x'.repeat(5000);
    const result = { status: 'success', model: long, data: { long } };
    const { told, read } = await settled(t, ['T'], [runtimeTool('T', [], result, { maxResultSizeChars: 100 })]);
    assert.match(read[0].content, /^\[externalized result to /);
    assert.ok(read[0].content.length < 1000);
    assert.deepEqual(told[0].data, { long });
    assert.equal(told[0].metadata.resultExternalized, true);
  });
});

describe('Runtime progress, messages, and effects', () => {
  const uploading = {
    ...tool('Upload', async () => null),
    async *execute(params) {
      void params;
      yield {
        kind: 'progress',
        message: 'Uploading',
        completed: 1,
        total: 3,
      };
      yield {
        kind: 'message',
        content: { summary: 'Upload started' },
      };
      yield {
        kind: 'effect',
        effect: {
          type: 'contextPatch',
          patch: { metadata: { uploadId: 'upload-1' } },
        },
      };
      return {
        status: 'success',
        model: { uploadId: 'upload-1' },
      };
    },
  };

  test('the tool of the guide yields its events in the order they happen, and its effect holds', async (t) => {
    let metadata;
    const look = tool('Look', async (_, { contextSnapshot }) => {
      metadata = contextSnapshot.context.metadata;
      return 1;
    });
    const { session } = await open(t, [calls('Upload'), calls('Look'), 'done'], { tools: [uploading, look] });
    const events = (await ask(session)).filter(({ name }) => name === 'Upload');
    assert.deepEqual(
      events.slice(1).map(({ sessionId, id, name, ...rest }) => rest),
      [
        { type: 'tool_progress', progress: { kind: 'progress', message: 'Uploading', completed: 1, total: 3 } },
        { type: 'tool_message', content: { summary: 'Upload started' } },
        { type: 'tool_context_patch', patch: { metadata: { uploadId: 'upload-1' } } },
        { type: 'tool_result', output: { uploadId: 'upload-1' }, isError: false },
      ],
    );
    assert.deepEqual(metadata, { uploadId: 'upload-1' });
  });

  test('SDK-owned tools use the same protocol', async (t) => {
    const root = folder(t);
    const { events } = await turn(t, [{ name: 'Glob', input: { pattern: '*' } }], {
      profile: 'local',
      defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    });
    const [progress] = only(events, 'tool_progress');
    assert.equal(progress.progress.kind, 'progress');
    assert.equal(typeof progress.progress.message, 'string');
  });

  test('effects are projected into their tool_* events', async (t) => {
    const effects = {
      tool_runtime_patch: {
        type: 'runtimePatch',
        patch: { scope: 'session', source: 'tool', systemPromptAppend: 'p' },
      },
      tool_context_patch: { type: 'contextPatch', patch: { metadata: { a: 1 } } },
      tool_new_messages: { type: 'newMessages', messages: [{ role: 'user', content: 'more' }] },
      tool_permission_updates: {
        type: 'permissionUpdates',
        updates: [{ type: 'addRules', behavior: 'deny', rules: [{ toolName: 'T' }] }],
      },
    };
    const yields = Object.values(effects).map((effect) => ({ kind: 'effect', effect }));
    const { session, provider } = await open(t, [calls('T'), calls('T'), 'done'], {
      tools: [runtimeTool('T', yields, { status: 'success', model: 'ok' })],
    });
    const events = await ask(session);
    const [, ...projected] = events.filter(({ name }) => name === 'T').slice(0, 5);
    assert.deepEqual(
      projected.map(({ type, patch, messages, updates }) => [type, patch ?? messages ?? updates]),
      Object.entries(effects).map(([type, { patch, messages, updates }]) => [type, patch ?? messages ?? updates]),
    );
    // Policy, messages and permissions hold from the next turn on; the context does in the test above.
    const [system] = provider.requests[1].messages;
    assert.deepEqual([system.role, /p$/.test(system.content)], ['system', true]);
    assert.equal(provider.requests[1].messages.at(-1).content, 'more');
    assert.equal(results(events)[1].isError, true, 'the added rule denies the second call');
  });
});
