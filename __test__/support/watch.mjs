// Preloaded into every test file (see scripts/test.mjs): every stream of every Session is checked as it is read, so that
// no test can see events in an order the package does not promise.

import { createSession } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import { checker } from './invariants.mjs';

const session = await createSession({ provider: scriptedProvider([]), model: 'm' });
const prototype = Object.getPrototypeOf(session);
await session.close();

const { stream } = prototype;
prototype.stream = function (options) {
  const events = stream.call(this, options);
  const { next } = events;
  const check = checker();
  events.next = async function () {
    const step = await next.call(this);
    check(step.done ? undefined : step.value);
    return step;
  };
  return events;
};
