// Durable boundaries: an observer that is awaited before each step, and what happens when it fails.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { calls, open, tool } from './support/pipeline.mjs';
import { checkBoundaries } from './support/invariants.mjs';
import { ask, gate, only, results } from './support/run.mjs';
import { until } from './support/session.mjs';

const echo = (execute = async (params) => ({ got: params })) =>
  tool('Echo', execute, { kind: 'execute', sideEffect: 'idempotent' });

/** An observer that notes everything with the time it was told, and fails at one boundary. */
function observer(log, fails) {
  const at = async (boundary, callId, event, answer) => {
    log.push([`${boundary} begins`, event]);
    await new Promise(setImmediate);
    if (fails === boundary) throw Object.assign(new Error('disk full'), { code: 'ENOSPC' });
    log.push([boundary, event, callId]);
    return answer;
  };
  return {
    onToolScheduled: (event) => {
      const id = event.toolCallId;
      return at('scheduled', id, event, {
        onPermissionRequested: (details, input) => at('requested', id, { details, input }, `question-${id}`),
        onPermissionResolved: (resolution) => at('resolved', id, resolution),
        onExecutionStarted: (started) => at('started', id, started),
      });
    },
    onToolSettled: (event) => at('settled', event.toolCallId, event),
  };
}

/** `[boundary or event, callId]` of what was stored and read. */
const boundariesOf = (log) =>
  log.filter(([, , callId]) => callId !== undefined).map(([step, , callId]) => [step, callId]);

async function observed(t, { fails, turns = [calls({ name: 'Echo', input: { a: 1 } }), 'done'], ...options } = {}) {
  const log = [];
  const { session } = await open(t, turns, {
    tools: [
      echo(async (params) => {
        log.push(['runs', params]);
        return { got: params };
      }),
    ],
    toolLifecycle: observer(log, fails),
    confirmationHandler: {
      requestConfirmation: async (details) => {
        log.push(['asked', details]);
        return { approved: true, scope: 'once' };
      },
    },
    ...options,
  });
  await session.send('hi');
  const events = [];
  for await (const event of session.stream()) {
    if (event.type === 'tool_use' || event.type === 'tool_result') log.push([event.type, event, event.id]);
    events.push(event);
  }
  checkBoundaries(boundariesOf(log));
  return { session, log, events, steps: log.map(([step]) => step).filter((step) => !step.endsWith('begins')) };
}

const detail = (log, step) => log.find(([name]) => name === step)?.[1];

describe('order', () => {
  test('each boundary is stored before its step', async (t) => {
    const { steps, log } = await observed(t);
    assert.deepEqual(
      steps.filter((step) => step !== 'tool_use' && step !== 'tool_result'),
      ['scheduled', 'requested', 'asked', 'resolved', 'started', 'runs', 'settled'],
    );
    // The consumer reads when it likes, so what is certain is what was stored before an event can be seen.
    assert.ok(steps.indexOf('scheduled') < steps.indexOf('tool_use'));
    assert.ok(steps.indexOf('settled') < steps.indexOf('tool_result'));
    const { toolCallId, ...scheduled } = detail(log, 'scheduled');
    assert.equal(typeof toolCallId, 'string');
    assert.deepEqual(scheduled, {
      toolName: 'Echo',
      modelInput: { a: 1 },
      input: { a: 1 },
      sideEffect: 'idempotent',
      interruptBehavior: 'block',
    });
    assert.equal(detail(log, 'asked').permissionRequestId, `question-${toolCallId}`);
    assert.deepEqual(detail(log, 'resolved'), {
      permissionRequestId: `question-${toolCallId}`,
      decision: 'allow',
      scope: 'once',
    });
    assert.deepEqual(detail(log, 'started'), { input: { a: 1 }, sideEffect: 'idempotent' });
    const settled = detail(log, 'settled');
    assert.equal(settled.toolCallId, toolCallId);
    assert.equal(settled.result.status, 'success');
    assert.deepEqual(settled.result.model, { got: { a: 1 } });
  });

  test('events are deep copies: what an observer does to them changes nothing', async (t) => {
    const spoil = (value) => {
      for (const key of Object.keys(value)) {
        if (value[key] !== null && typeof value[key] === 'object') spoil(value[key]);
        value[key] = 'spoiled';
      }
    };
    const { session } = await open(t, [calls({ name: 'Echo', input: { a: { b: 1 } } }), 'done'], {
      permissionMode: 'yolo',
      tools: [echo()],
      toolLifecycle: {
        onToolScheduled: async (event) => {
          spoil(event);
          return { onExecutionStarted: async (started) => spoil(started) };
        },
        onToolSettled: async (event) => spoil(event),
      },
    });
    const [result] = results(await ask(session));
    assert.deepEqual(result.output, { got: { a: { b: 1 } } });
  });

  test('a rejected question is resolved as deny, and the failure is settled', async (t) => {
    const { log, steps } = await observed(t, {
      confirmationHandler: { requestConfirmation: async () => ({ approved: false, reason: 'no' }) },
    });
    assert.deepEqual(detail(log, 'resolved').decision, 'deny');
    assert.equal(detail(log, 'resolved').reason, 'no');
    assert.equal(steps.includes('started'), false);
    assert.equal(detail(log, 'settled').result.error.type, 'permission_denied');
  });

  test('an abort while a person is asked resolves the question as cancel before it completes', async (t) => {
    const log = [];
    const [asked, answered] = [gate(), gate()];
    const { session } = await open(t, [calls('Echo'), 'done'], {
      tools: [echo()],
      toolLifecycle: observer(log),
      confirmationHandler: {
        requestConfirmation: async () => {
          asked.open();
          await answered.opened;
          return { approved: true };
        },
      },
    });
    const all = ask(session);
    await asked.opened;
    const aborted = session.abort();
    await until(() => log.some(([step]) => step === 'resolved'));
    answered.open();
    await aborted;
    await all;
    const decisions = log.filter(([step]) => step === 'resolved').map(([, event]) => event.decision);
    assert.deepEqual(decisions, ['cancel']);
    assert.equal(
      log.some(([step]) => step === 'started'),
      false,
    );
    assert.equal(log.at(-1)[0], 'settled');
  });
});

describe('an observer that fails', () => {
  for (const boundary of ['requested', 'resolved', 'started']) {
    test(`at "${boundary}": the step does not happen, the call is an error result and the request goes on`, async (t) => {
      const { log, steps, events } = await observed(t, { fails: boundary });
      const after = { requested: 'asked', resolved: 'started', started: 'runs' }[boundary];
      assert.equal(steps.includes(after), false);
      assert.equal(steps.includes('runs'), false);
      const [result] = results(events);
      assert.equal(result.isError, true);
      assert.match(result.output, /could not be stored.*disk full/);
      assert.equal(detail(log, 'settled').result.error.code, 'TOOL_LIFECYCLE_FAILED');
      assert.equal(only(events, 'result')[0].subtype, 'success');
    });
  }
  for (const boundary of ['scheduled', 'settled']) {
    test(`at "${boundary}": nothing is published after it, the request fails and the next one works`, async (t) => {
      const turns = [calls('Echo', 'Echo'), 'again'];
      const { session, steps, events } = await observed(t, { fails: boundary, turns });
      assert.equal(steps.includes(boundary === 'scheduled' ? 'tool_use' : 'tool_result'), false);
      assert.equal(steps.includes('runs'), boundary === 'settled');
      assert.equal(only(events, 'error')[0].code, 'TOOL_LIFECYCLE_FAILED');
      assert.match(only(events, 'error')[0].message, /disk full/);
      assert.equal(only(await ask(session), 'result')[0].content, 'again');
      // Nothing of the failed exchange is sent again.
      assert.deepEqual(
        session.messages.map(({ role }) => role),
        ['user', 'user', 'assistant'],
      );
    });
  }

  for (const [name, toolLifecycle] of Object.entries({
    'no object': 3,
    'no function': { onToolSettled: true },
  })) {
    test(`${name} is refused when the Session opens`, async (t) => {
      await assert.rejects(open(t, ['x'], { toolLifecycle }), { code: 'CONFIG_ERROR', message: /toolLifecycle/ });
    });
  }

  test('a permission request without an id, and an invocation that is no object, fail what they belong to', async (t) => {
    const { session } = await open(t, [calls('Echo'), 'done'], {
      tools: [echo()],
      confirmationHandler: { requestConfirmation: async () => ({ approved: true }) },
      toolLifecycle: { onToolScheduled: async () => ({ onPermissionRequested: async () => undefined }) },
    });
    assert.match(results(await ask(session))[0].output, /permission request id/);
    const other = await open(t, [calls('Echo'), 'done'], {
      tools: [echo()],
      toolLifecycle: { onToolScheduled: async () => 'text' },
    });
    assert.equal(only(await ask(other.session), 'error')[0].code, 'TOOL_LIFECYCLE_FAILED');
  });
});

describe('what is not told', () => {
  test('arguments that are no JSON object are no invocation', async (t) => {
    const turns = [{ toolCalls: [{ name: 'Echo', input: '{' }] }, 'done'];
    const { steps, events } = await observed(t, { turns });
    assert.deepEqual(steps, ['tool_use', 'tool_result']);
    assert.equal(results(events)[0].isError, true);
  });

  test('an observer of the ends alone hears of the ends alone', async (t) => {
    const ends = [];
    await observed(t, { toolLifecycle: { onToolSettled: async ({ toolName }) => void ends.push(toolName) } });
    assert.deepEqual(ends, ['Echo']);
  });

  test('parallel calls: all are scheduled before one runs, and each has its own observer', async (t) => {
    const list = Array.from({ length: 20 }, (_, n) => ({ name: 'Echo', input: { n } }));
    const { log, steps } = await observed(t, { turns: [calls(...list), 'done'], permissionMode: 'yolo' });
    assert.ok(steps.lastIndexOf('scheduled') < steps.indexOf('runs'));
    const numbers = (step, of) =>
      log
        .filter(([name]) => name === step)
        .map(([, event]) => of(event))
        .sort((a, b) => a - b);
    const all = list.map(({ input }) => input.n);
    assert.deepEqual(
      numbers('started', ({ input }) => input.n),
      all,
    );
    assert.deepEqual(
      numbers('settled', ({ result }) => result.model.got.n),
      all,
    );
  });
});

test('a callback that fails after its request was aborted takes nothing from the calls of the next one', async (t) => {
  const log = [];
  const [stuck, last] = [gate(), gate()];
  let scheduled = 0;
  const { session } = await open(t, [calls('Echo'), calls('Echo', 'Echo'), 'done'], {
    permissionMode: 'yolo',
    tools: [echo(async () => log.push('runs'))],
    toolLifecycle: {
      onToolScheduled: async () => {
        scheduled += 1;
        if (scheduled === 1) {
          await stuck.opened;
          throw new Error('late');
        }
        if (scheduled === 3) await last.opened;
        return { onExecutionStarted: async () => void log.push('started') };
      },
    },
  });
  const aborted = ask(session);
  await until(() => scheduled === 1);
  await session.abort();
  await aborted;
  const next = ask(session);
  await until(() => scheduled === 3);
  stuck.open();
  await new Promise(setImmediate);
  last.open();
  // Whether the late callback has settled for the native side already is open; a call that runs was stored as started.
  for (const { isError, output } of results(await next)) if (isError) assert.match(output, /still cleaning up/);
  const count = (what) => log.filter((entry) => entry === what).length;
  assert.equal(count('runs'), count('started'));
});
