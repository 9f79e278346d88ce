// Session factories of both profiles, and `prompt`.

import { errorOf } from './errors.js';
import { Session } from './session.js';

/** Factories of one profile. */
export function sessionsOf(profile) {
  async function createSession(options) {
    return new Session(profile, options);
  }

  async function prompt(message, options) {
    const started = performance.now();
    const session = new Session(profile, options);
    let failure;
    try {
      await session.send(message);
      let result;
      let usage;
      for await (const event of session.stream()) {
        if (event.type === 'error') throw errorOf(event);
        if (event.type === 'usage') usage = event.usage;
        if (event.type === 'result') result = event;
      }
      if (result === undefined) throw errorOf({ code: 'ABORT', message: 'the request was aborted' });
      if (result.subtype === 'error')
        throw errorOf({ code: 'INTERNAL', message: result.error ?? 'the request failed' });
      const { toolCalls, turnsCount } = session.lastRequest();
      return { result: result.content ?? '', toolCalls, usage, duration: performance.now() - started, turnsCount };
    } catch (error) {
      failure = { error };
      throw error;
    } finally {
      // A tool that goes on after the failure keeps the Session from closing, which is not what went wrong.
      await session.close().catch((error) => {
        if (failure === undefined) throw error;
      });
    }
  }

  return { createSession, prompt };
}
