// The checker that watches all other tests: each of its rules refuses a log that breaks it.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkBoundaries, checker } from './support/invariants.mjs';

const event = (type, more) => ({ type, sessionId: 's', ...more });
const begin = event('turn_start', { turn: 1 });
const end = event('turn_end', { turn: 1 });
const use = event('tool_use', { id: 'c', name: 'T', input: {} });
const said = event('tool_message', { id: 'c', name: 'T', content: { summary: 'x' } });
const got = event('tool_result', { id: 'c', name: 'T', output: 1, isError: false });
const usage = event('usage', { usage: {} });
const result = event('result', { subtype: 'success' });
const failure = event('error', { code: 'X', message: 'why' });

const check = (log) => {
  const look = checker();
  for (const one of log) look(one);
  look(undefined);
};

test('a whole log passes, and so do the logs of failed and aborted requests', () => {
  check([begin, use, said, got, end, event('turn_start', { turn: 2 }), event('turn_end', { turn: 2 }), usage, result]);
  check([begin, failure]);
  check([failure]);
  check([begin, use]);
  check([]);
});

describe('each rule', () => {
  for (const [name, log] of Object.entries({
    'something after the result': [begin, end, usage, result, begin],
    'something after the error': [failure, usage],
    'another Session': [begin, { ...end, sessionId: 'other' }],
    'text outside of a turn': [event('content', { delta: 'x' })],
    'two turns at once': [begin, event('turn_start', { turn: 2 })],
    'a turn left out': [event('turn_start', { turn: 2 })],
    'the end of another turn': [begin, event('turn_end', { turn: 2 })],
    'a call without a result': [begin, use, end],
    'a result without a call': [begin, got],
    'two results': [begin, use, got, got],
    'two calls of one id': [begin, use, use],
    'an update after the result': [begin, use, got, said],
    'another name': [begin, use, { ...got, name: 'U' }],
    'usage in a turn': [begin, usage],
    'usage twice': [usage, usage],
    'a result without usage': [begin, end, result],
    'an error without a code': [event('error', { message: 'x' })],
    'a result that says nothing': [begin, use, { ...got, output: undefined }],
  })) {
    test(`${name} is refused`, () => assert.throws(() => check(log), assert.AssertionError));
  }
});

test('boundaries of calls', () => {
  const log = (...steps) => steps.map((step) => [step, 'c']);
  checkBoundaries(log('scheduled', 'tool_use', 'requested', 'resolved', 'started', 'settled', 'tool_result'));
  checkBoundaries(log('scheduled', 'settled', 'tool_use', 'tool_result'));
  checkBoundaries(log('tool_use', 'tool_result'));
  for (const wrong of [
    log('tool_use', 'scheduled'),
    log('started'),
    log('scheduled', 'started', 'requested'),
    log('scheduled', 'started', 'started'),
    log('scheduled', 'resolved'),
    log('scheduled', 'tool_use', 'tool_result'),
    log('scheduled', 'settled', 'started'),
  ]) {
    assert.throws(() => checkBoundaries(wrong), assert.AssertionError, JSON.stringify(wrong));
  }
});
