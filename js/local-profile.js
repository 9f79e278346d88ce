// Sessions with the built-in tools.

import { sessionsOf } from './factories.js';

export const { createSession, prompt } = sessionsOf('local');
