// What holds for every log of events, and for every log of durable boundaries.

import assert from 'node:assert/strict';

const OF_A_CALL = new Set([
  'tool_progress',
  'tool_message',
  'tool_runtime_patch',
  'tool_context_patch',
  'tool_new_messages',
  'tool_permission_updates',
]);
const OF_A_TURN = new Set(['content', 'thinking', 'tool_use', 'tool_result', ...OF_A_CALL]);

/** Looks at the events of one stream, one after the other; `undefined` is its end. Throws at the first that is wrong. */
export function checker() {
  const calls = new Map();
  let sessionId;
  let turns = 0;
  let inTurn = false;
  let usage = false;
  let terminal;
  let last;
  return (event) => {
    const wrong = (why) => `${why} (${event?.type ?? 'the end'} after ${last?.type ?? 'the beginning'})`;
    if (event === undefined) return;
    assert.equal(terminal, undefined, wrong('nothing follows the terminal event'));
    sessionId ??= event.sessionId;
    assert.equal(event.sessionId, sessionId, wrong('all events are of one Session'));
    if (OF_A_TURN.has(event.type)) assert.ok(inTurn, wrong('it belongs into a turn'));
    if (OF_A_CALL.has(event.type) || event.type === 'tool_result') {
      const call = calls.get(event.id);
      assert.ok(call, wrong(`call ${event.id} was announced`));
      assert.equal(call.settled, false, wrong(`call ${event.id} has not settled`));
      assert.equal(call.name, event.name, wrong('a call keeps its name'));
    }
    switch (event.type) {
      case 'turn_start':
        assert.equal(inTurn, false, wrong('turns do not overlap'));
        assert.equal(event.turn, turns + 1, wrong('turns are counted'));
        turns = event.turn;
        inTurn = true;
        break;
      case 'turn_end':
        assert.ok(inTurn, wrong('a turn ends that began'));
        assert.equal(event.turn, turns, wrong('the turn that began'));
        for (const [id, { settled }] of calls) assert.ok(settled, wrong(`call ${id} has a result`));
        inTurn = false;
        break;
      case 'tool_use':
        assert.equal(typeof event.id, 'string');
        assert.equal(calls.has(event.id), false, wrong('ids of calls are unique'));
        calls.set(event.id, { name: event.name, settled: false });
        break;
      case 'tool_result':
        assert.equal(typeof event.isError, 'boolean');
        assert.notEqual(event.output, undefined, wrong('a result says something'));
        calls.get(event.id).settled = true;
        break;
      case 'usage':
        assert.equal(inTurn, false, wrong('usage comes after the last turn'));
        assert.equal(usage, false, wrong('usage comes once'));
        usage = true;
        break;
      case 'result':
        assert.ok(usage, wrong('a result follows the usage'));
        terminal = event;
        break;
      case 'error':
        assert.equal(usage, false, wrong('a failure has no usage'));
        assert.equal(typeof event.code, 'string', wrong('a failure has a code'));
        assert.notEqual(event.message, '', wrong('a failure says why'));
        terminal = event;
        break;
    }
    last = event;
  };
}

const ORDER = ['scheduled', 'requested', 'resolved', 'started', 'settled'];
/** Event → the boundary that is stored before it can be read. Readers take their time, so nothing else is certain. */
const STORED_BEFORE = { tool_use: 'scheduled', tool_result: 'settled' };

/** Looks at `[boundary or event, callId]` pairs in the order they were stored or read. */
export function checkBoundaries(log) {
  const reached = new Map();
  const observed = new Set(log.filter(([boundary]) => boundary === 'scheduled').map(([, callId]) => callId));
  for (const [boundary, callId] of log) {
    const steps = reached.get(callId) ?? [];
    if (boundary in STORED_BEFORE) {
      const stored = STORED_BEFORE[boundary];
      if (observed.has(callId))
        assert.ok(steps.includes(stored), `${stored} of ${callId} is stored before ${boundary}`);
      continue;
    }
    const at = ORDER.indexOf(boundary);
    const before = steps.at(-1);
    assert.ok(at >= 0, `${boundary} is a boundary`);
    assert.ok(at > ORDER.indexOf(before), `${boundary} of ${callId} comes after ${before ?? 'nothing'}, and once`);
    if (boundary !== 'scheduled') assert.ok(before !== undefined, `${callId} was scheduled before ${boundary}`);
    if (boundary === 'resolved') assert.equal(before, 'requested', 'an answer follows its question');
    reached.set(callId, [...steps, boundary]);
  }
}
