// The application's logger: what it is, and how it is told.

import { ConfigError } from './errors.js';

const LEVELS = ['debug', 'info', 'warn', 'error'];

/** The logger of a Session, checked. */
export function loggerOf({ logger }) {
  if (logger !== undefined && typeof logger?.log !== 'function') {
    throw new ConfigError('logger must be an object with log(entry)');
  }
  return logger;
}

/** The least important entries it wants. Loggers of other libraries have levels of their own, which say nothing here. */
export function levelOf(logger) {
  if (logger === undefined) return undefined;
  return LEVELS.includes(logger.level) ? logger.level : 'debug';
}

/** Tells entries. Nobody waits for a logger, and what fails in it is its own affair. */
export function tell(logger, [, ...entries]) {
  for (const entry of entries) {
    try {
      const answer = logger.log(entry);
      if (answer !== undefined) new Promise((resolve) => resolve(answer)).catch(() => {});
    } catch {
      // Telling the logger would be the next thing to fail.
    }
  }
}
