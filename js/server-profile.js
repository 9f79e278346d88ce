// Sessions without built-in tools or access to the host.

import { sessionsOf } from './factories.js';

export const { createSession, prompt } = sessionsOf('server');
