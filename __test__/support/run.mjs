// What the tests of requests share: sending, collecting events, and the order every stream of events keeps.

import assert from 'node:assert/strict';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Sends a message and collects the events of the request, in the documented order. */
export async function ask(session, message = 'hi', options = {}) {
  await session.send(message, options.send);
  const events = [];
  for await (const event of session.stream(options.stream)) events.push(event);
  checkOrder(events);
  return events;
}

/** The order of events that every request keeps. */
export function checkOrder(events) {
  const open = new Map();
  let turn = 0;
  let ended = false;
  let over = false;
  for (const event of events) {
    assert.ok(!over, `${event.type} comes after the end`);
    switch (event.type) {
      case 'turn_start':
        assert.equal(event.turn, turn + 1, 'turns count from one');
        turn = event.turn;
        ended = false;
        break;
      case 'turn_end':
        assert.equal(event.turn, turn);
        assert.equal(open.size, 0, 'a turn ends with all of its results');
        ended = true;
        break;
      case 'tool_use':
        assert.ok(!open.has(event.id), `call ${event.id} is announced once`);
        open.set(event.id, event.name);
        break;
      case 'tool_result':
        assert.equal(open.get(event.id), event.name, 'a result follows its call');
        open.delete(event.id);
        break;
      case 'usage':
        assert.ok(ended, 'usage follows the last turn');
        break;
      case 'result':
      case 'error':
        over = true;
        break;
    }
  }
}

export const only = (events, type) => events.filter((event) => event.type === type);

/** The text a request streamed. */
export const textOf = (events) =>
  only(events, 'content')
    .map((event) => event.delta)
    .join('');

/** Events without what differs between two runs of the same request. */
export const comparable = (events) => events.map(({ sessionId: _, ...event }) => event);

/**
 * Joins neighbouring deltas, since how an answer was cut into packets is no part of it, and puts neighbouring results
 * into one order, since parallel calls end as they like.
 */
export function joined(events) {
  const out = [];
  for (const event of comparable(events)) {
    const last = out.at(-1);
    if (event.delta !== undefined && last?.type === event.type) last.delta += event.delta;
    else out.push({ ...event });
  }
  for (let at = 1; at < out.length; at++) {
    for (let to = at; to > 0 && bothResults(out[to - 1], out[to]) && out[to - 1].id > out[to].id; to--) {
      [out[to - 1], out[to]] = [out[to], out[to - 1]];
    }
  }
  return out;
}

const bothResults = (...events) => events.every((event) => event.type === 'tool_result');

/** The tool results of a request in the order of their calls; they are published as they come. */
export function results(events) {
  const byId = new Map(only(events, 'tool_result').map((event) => [event.id, event]));
  return only(events, 'tool_use').map((event) => byId.get(event.id));
}

/** A private folder that goes with the test. */
export function folder(t) {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'agent-sdk-')));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** A deterministic random number generator (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    below: (limit) => Math.floor(next() * limit),
    pick: (list) => list[Math.floor(next() * list.length)],
  };
}

/** A promise to be settled from outside. */
export function gate() {
  let open;
  const opened = new Promise((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
