// The logger and where artifacts go.

import {
  createSession,
  type AgentLogger,
  type ArtifactOptions,
  type JsonValue,
  type LogEntry,
  type LogLevelName,
  type SessionId,
} from '@blade-ai/agent-sdk';
import { holds, typeOf, type Equal } from './expect.js';

const provider = { type: 'openai-compatible' };

holds<Equal<LogLevelName, 'debug' | 'info' | 'warn' | 'error'>>();
declare const entry: LogEntry;
typeOf(entry.level).is<LogLevelName>();
typeOf(entry.timestamp).is<number>();
typeOf(entry.sessionId).is<SessionId | undefined>();
typeOf(entry.args).is<JsonValue[] | undefined>();

// Synchronous, asynchronous, or a method of an object of another library.
const sync: AgentLogger = { log: ({ message }) => console.error(message) };
const async: AgentLogger = { level: 'warn', log: async () => {} };
class Other {
  level = 'silly';
  log(entry: { level: string; message: string }): this {
    void entry;
    return this;
  }
}
for (const logger of [sync, async, new Other()]) await createSession({ provider, model: 'm', logger });
// @ts-expect-error a logger is an object
await createSession({ provider, model: 'm', logger: () => {} });
// @ts-expect-error no such field
const wrong: AgentLogger = { log: (entry) => entry.text };
void wrong;

const artifacts: ArtifactOptions = {};
await createSession({ provider, model: 'm', artifacts });
// @ts-expect-error a directory is a path
await createSession({ provider, model: 'm', artifacts: { directory: 1 } });
// @ts-expect-error no such option
await createSession({ provider, model: 'm', artifacts: { dir: '/x' } });
