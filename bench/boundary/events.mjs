// Ways to bring events to a `for await` loop: node bench/boundary/events.mjs [--reps 9]
//
// Each way starts from bytes the native side would hold, makes the JavaScript strings the way N-API does (one native
// call that copies Latin-1 bytes; a call of an addon costs some 100 ns more than this one), builds the same
// `{ type, delta, sessionId }` and hands it to the loop. What differs is how often the border is crossed and who builds
// the object. Prints nanoseconds of CPU an event, and the ratio to the way the package uses.

import { parseArgs } from 'node:util';
import { expect, median, timed } from '../measure.mjs';

const EVENTS = 20_000;
const FRAME = 1_000;
const DELTA = 'x'.repeat(16);
const SESSION = 'session';
const KIND_AND_LENGTH = DELTA.length;

const frames = EVENTS / FRAME;
const event = { type: 'content', delta: DELTA, sessionId: SESSION };
const packed = Buffer.from(DELTA.repeat(FRAME));
const marks = new Uint32Array(FRAME).fill(KIND_AND_LENGTH);
const jsonBatch = Buffer.from(JSON.stringify(Array(FRAME).fill(event)));
const jsonEvent = Buffer.from(JSON.stringify(event));
const textEvent = Buffer.from(DELTA);

/** One string and one array of lengths a frame; events are cut out of it when they are asked for. */
function* packedFrames() {
  for (let frame = 0; frame < frames; frame++) {
    const text = packed.latin1Slice();
    const lengths = marks.slice();
    let at = 0;
    for (const length of lengths) {
      const from = at;
      at += length;
      yield { type: 'content', delta: text.slice(from, at), sessionId: SESSION };
    }
  }
}

/** One JSON array a frame. */
function* jsonBatches() {
  for (let frame = 0; frame < frames; frame++) yield* JSON.parse(jsonBatch.latin1Slice());
}

/** One JSON text an event. */
function* jsonEvents() {
  for (let i = 0; i < EVENTS; i++) yield JSON.parse(jsonEvent.latin1Slice());
}

/** One native string an event, the object built around it. */
function* textEvents() {
  for (let i = 0; i < EVENTS; i++) yield { type: 'content', delta: textEvent.latin1Slice(), sessionId: SESSION };
}

/** `next` answers at once from what is there. */
function handWritten(source) {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => Promise.resolve(source.next()),
  };
}

async function* generated(source) {
  for (const value of source) yield value;
}

/** Every event settles a promise the loop already waits for, one turn of the event loop's microtasks later. */
function resolvedOneByOne(source) {
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    next: () => new Promise((resolve) => queueMicrotask(() => resolve(source.next()))),
  };
}

const ways = {
  'packed frames, hand-written iterator': () => handWritten(packedFrames()),
  'packed frames, async generator': () => generated(packedFrames()),
  'packed frames, a promise an event': () => resolvedOneByOne(packedFrames()),
  'JSON batches, hand-written iterator': () => handWritten(jsonBatches()),
  'a native string an event': () => handWritten(textEvents()),
  'a JSON text an event': () => handWritten(jsonEvents()),
};

async function consume(events) {
  let units = 0;
  for await (const { delta } of events) units += delta.length;
  expect('characters', units, EVENTS * DELTA.length);
}

const { values } = parseArgs({ options: { reps: { type: 'string', default: '9' } } });
const figures = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let i = 0; i <= Number(values.reps); i++) {
  for (const [name, open] of Object.entries(ways)) {
    const { cpu } = await timed(5, () => consume(open()));
    // The first round lets the compiler settle.
    if (i > 0) figures[name].push((cpu * 1000) / EVENTS);
  }
}
const [base] = Object.values(figures);
for (const [name, each] of Object.entries(figures)) {
  const ratio = median(each.map((value, i) => value / base[i]));
  console.log(`${name.padEnd(40)} ${median(each).toFixed(0).padStart(5)} ns  ${ratio.toFixed(2)} x`);
}
