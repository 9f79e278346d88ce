// Tools in the runtime protocol itself: what a call does, checks of their own, and what is believed of them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import { calls, generator, open } from './support/pipeline.mjs';
import { ask, gate, only, results } from './support/run.mjs';

const runtimeTool = (name, more = {}) => ({
  ...generator(name, async function* (params) {
    yield { kind: 'progress', message: 'working' };
    return { status: 'success', model: { ran: params } };
  }),
  kind: ToolKind.Execute,
  ...more,
});

/** What permissions are told of one call. */
async function judged(t, definition, input = {}) {
  let request;
  const { session } = await open(t, [calls({ name: 'T', input }), 'done'], {
    tools: [runtimeTool('T', definition)],
    permissionHandler: async (asked) => {
      request = asked;
      return { behavior: 'allow' };
    },
  });
  const [result] = results(await ask(session));
  const { toolKind: kind, toolMeta } = request;
  const { sideEffect, isReadOnly, isConcurrencySafe, isDestructive } = toolMeta;
  return { behavior: { kind, sideEffect, isReadOnly, isConcurrencySafe, isDestructive }, result };
}

const CONSERVATIVE = {
  kind: 'execute',
  sideEffect: 'non_idempotent',
  isReadOnly: false,
  isConcurrencySafe: false,
  isDestructive: false,
};

describe('behaviour', () => {
  test('dimensions are independent of each other', async (t) => {
    const { behavior } = await judged(t, {
      kind: ToolKind.Write,
      sideEffect: ToolSideEffect.PURE,
      isReadOnly: true,
      isConcurrencySafe: false,
      isDestructive: true,
    });
    assert.deepEqual(behavior, {
      kind: 'write',
      sideEffect: 'pure',
      isReadOnly: true,
      isConcurrencySafe: false,
      isDestructive: true,
    });
    const { behavior: defaults } = await judged(t, {});
    assert.deepEqual(defaults, CONSERVATIVE);
  });

  test('a resolver narrows one call and is given its arguments', async (t) => {
    const resolveBehavior = ({ verb }) =>
      verb === 'look' ? { kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE, isReadOnly: true } : {};
    const look = await judged(t, { resolveBehavior }, { verb: 'look' });
    assert.deepEqual(look.behavior, { ...CONSERVATIVE, kind: 'readonly', sideEffect: 'pure', isReadOnly: true });
    assert.deepEqual((await judged(t, { resolveBehavior }, { verb: 'push' })).behavior, CONSERVATIVE);
    const later = async ({ force }) => ({ isDestructive: force });
    assert.equal((await judged(t, { resolveBehavior: later }, { force: true })).behavior.isDestructive, true);
  });

  const bad = {
    throws: () => {
      throw new Error('no idea');
    },
    rejects: async () => Promise.reject(new Error('no idea')),
    'answers nothing': () => undefined,
    'answers a text': () => 'pure',
    'answers an unknown value': () => ({ sideEffect: 'mostly_harmless' }),
    'answers an unknown dimension': () => ({ readOnly: true }),
    'claims a wider kind': () => ({ kind: ToolKind.Execute }),
    'claims a wider side effect': () => ({ sideEffect: ToolSideEffect.NON_IDEMPOTENT }),
    'claims to change things': () => ({ isReadOnly: false }),
  };
  for (const [name, resolveBehavior] of Object.entries(bad)) {
    test(`a resolver that ${name} is not believed: the call counts as executing`, async (t) => {
      const declared = { kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE };
      const { behavior, result } = await judged(t, { ...declared, resolveBehavior });
      assert.deepEqual(behavior, CONSERVATIVE);
      assert.equal(result.isError, false);
    });
  }

  test('plan mode uses the declaration to show tools and the resolved behaviour to run them', async (t) => {
    const resolveBehavior = () => ({ kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE, isReadOnly: true });
    const { session, provider } = await open(t, [calls('T'), 'done'], {
      permissionMode: 'plan',
      tools: [runtimeTool('T', { resolveBehavior })],
    });
    const [result] = results(await ask(session));
    assert.deepEqual(provider.requests[0].tools ?? [], []);
    assert.equal(result.isError, false);
  });

  test('defineTool does not take these: they are no part of authoring', async (t) => {
    const { tool } = await import('./support/pipeline.mjs');
    let request;
    const { session } = await open(t, [calls('A'), 'done'], {
      tools: [
        tool('A', async () => 1, { kind: 'execute', isReadOnly: true, resolveBehavior: () => ({ isReadOnly: true }) }),
      ],
      permissionHandler: async (asked) => {
        request = asked;
        return { behavior: 'allow' };
      },
    });
    await ask(session);
    assert.equal(request.toolMeta.isReadOnly, false);
  });
});

describe('own checks', () => {
  const checked = (validate, more) => runtimeTool('T', { kind: ToolKind.ReadOnly, validate, ...more });
  const run = async (t, validate, input = {}) => {
    const { session } = await open(t, [calls({ name: 'T', input }), 'done'], { tools: [checked(validate)] });
    return results(await ask(session))[0];
  };

  test('a check runs after the schema, sees the signal, and its words reach the model', async (t) => {
    let seen;
    const validate = async (params, context) => {
      seen = { params, context };
      return params.n > 3 ? { message: 'n is too big', model: 'use at most 3' } : undefined;
    };
    assert.deepEqual((await run(t, validate, { n: 1 })).output, { ran: { n: 1 } });
    assert.ok(seen.context.signal instanceof AbortSignal);
    assert.equal(seen.context.permissionMode, 'default');
    const refused = await run(t, validate, { n: 4 });
    assert.deepEqual([refused.isError, refused.output], [true, 'use at most 3']);
  });

  test('a check that throws or answers in the wrong form fails the call', async (t) => {
    const thrown = await run(t, async () => Promise.reject(new Error('no')));
    assert.match(thrown.output, /check of T failed: no/);
    assert.match((await run(t, async () => 'bad')).output, /wrong form/);
  });

  test('a rewrite is checked again', async (t) => {
    const seen = [];
    const { session } = await open(t, [calls({ name: 'T', input: { n: 1 } }), 'done'], {
      tools: [checked(async ({ n }) => void seen.push(n), { kind: ToolKind.Execute })],
      permissionHandler: async () => ({ behavior: 'allow', updatedInput: { n: 2 } }),
    });
    assert.deepEqual(results(await ask(session))[0].output, { ran: { n: 2 } });
    assert.deepEqual(seen, [1, 2]);
  });

  test('a check that ignores its signal does not hold up the abort, but the Session, until it settles', async (t) => {
    const [entered, stuck] = [gate(), gate()];
    let signal;
    const validate = async (_, context) => {
      signal = context.signal;
      entered.open();
      await stuck.opened;
    };
    const { session } = await open(t, [calls('T'), calls('T'), 'done'], { tools: [checked(validate)] });
    const first = ask(session);
    await entered.opened;
    await session.abort();
    assert.equal(signal.aborted, true);
    await first;
    const [refused] = results(await ask(session));
    assert.match(refused.output, /still cleaning up/);
    stuck.open();
    await session.close();
  });
});

describe('own permission', () => {
  const judged = async (t, checkPermissions, options = {}) => {
    const asked = [];
    const { session } = await open(t, [calls({ name: 'T', input: { n: 1 } }), 'done'], {
      permissionMode: 'yolo',
      tools: [runtimeTool('T', { checkPermissions })],
      confirmationHandler: {
        requestConfirmation: async (details) => {
          asked.push(details.message);
          return { approved: true };
        },
      },
      ...options,
    });
    const events = await ask(session);
    return { asked, result: results(events)[0], events, session };
  };

  test('a tool asks in every mode, whatever a handler allows', async (t) => {
    for (const options of [{}, { permissionMode: 'default', permissionHandler: async () => ({ behavior: 'allow' }) }]) {
      const { asked, result } = await judged(t, async () => ({ behavior: 'ask', message: 'costs money' }), options);
      assert.equal(asked.length, 1);
      assert.match(asked[0], /costs money/);
      assert.equal(result.isError, false);
    }
  });

  test('a tool denies for good, and may end the request', async (t) => {
    const deny = (interrupt) => async () => ({ behavior: 'deny', message: 'not on Sundays', interrupt });
    const allowed = { permissions: { allow: ['T'] } };
    const { asked, result, events } = await judged(t, deny(false), allowed);
    assert.deepEqual([result.isError, asked.length], [true, 0]);
    assert.match(result.output, /not on Sundays/);
    assert.equal(only(events, 'turn_start').length, 2);
    assert.equal(only((await judged(t, deny(true))).events, 'turn_start').length, 1);
  });

  test('an allow decides nothing for others; a changed input is checked again', async (t) => {
    const allow = async () => ({ behavior: 'allow', updatedInput: { n: 2 } });
    const denied = await judged(t, allow, { permissions: { deny: ['T'] } });
    assert.equal(denied.result.isError, true);
    assert.deepEqual((await judged(t, allow)).result.output, { ran: { n: 2 } });
  });

  test('a check that throws or answers in the wrong form denies', async (t) => {
    for (const bad of [async () => Promise.reject(new Error('x')), () => 'yes', () => ({ behavior: 'maybe' })]) {
      const { result } = await judged(t, bad);
      assert.equal(result.isError, true);
      assert.match(result.output, /permission check of T failed/);
    }
  });
});

test('what is declared wrongly is refused when the Session opens', async (t) => {
  for (const more of [
    { isReadOnly: 'yes' },
    { interruptBehavior: 'sometimes' },
    { maxResultSizeChars: 0 },
    { maxResultSizeChars: 1.5 },
    { resolveBehavior: true },
    { validate: 'x' },
    { checkPermissions: {} },
  ]) {
    await assert.rejects(open(t, ['x'], { tools: [runtimeTool('T', more)] }), (error) => {
      assert.ok(error.code === 'TOOL_DEFINITION_ERROR' || error instanceof TypeError, String(error));
      return true;
    });
  }
});

test('a long string result becomes an artifact above the tool’s own limit', async (t) => {
  const long = {
    ...generator('T', async function* () {
      yield { kind: 'progress' };
      return { status: 'success', model: 'x'.repeat(5000) };
    }),
    maxResultSizeChars: 100,
  };
  const { session } = await open(t, [calls('T'), 'done'], { tools: [long] });
  const events = await ask(session);
  assert.match(only(events, 'tool_result')[0].output, /^\[externalized result to /);
});
