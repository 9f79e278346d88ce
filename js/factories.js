// Session factories of both profiles, and `prompt`.

import { errorOf } from './errors.js';
import { Session } from './session.js';

/** Factories of one profile. */
export function sessionsOf(profile) {
  function createSession(options) {
    return Session.open(profile, options);
  }

  async function prompt(message, options) {
    const started = performance.now();
    const session = await Session.open(profile, options);
    let answer;
    try {
      answer = await answerOf(session, message);
    } catch (failure) {
      // The failure of the request is the one that counts.
      await session.close().catch(() => {});
      throw failure;
    }
    await session.close();
    return { ...answer, duration: performance.now() - started };
  }

  return { createSession, prompt };
}

async function answerOf(session, message) {
  await session.send(message);
  let result;
  let usage;
  for await (const event of session.stream()) {
    if (event.type === 'error') throw session.errorBehind(event);
    if (event.type === 'usage') usage = event.usage;
    if (event.type === 'result') result = event;
  }
  if (result === undefined) throw errorOf({ code: 'ABORT', message: 'the request was aborted' });
  if (result.subtype === 'error') throw errorOf({ code: 'INTERNAL', message: result.error ?? 'the request failed' });
  return { result: result.content ?? '', usage, ...session.lastRequest() };
}
