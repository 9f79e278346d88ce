// Who decides whether a tool may run: the mode, a handler, and in the end whoever confirms.

import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import {
  createCompositePermissionHandler,
  createModePermissionHandler,
  createPathSafetyPermissionHandler,
} from '@blade-ai/agent-sdk';
import { createSession } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const root = realpathSync(mkdtempSync(join(tmpdir(), 'permissions-')));

/** Runs a Session whose model wants to write two files, and shows what became of the calls. */
async function run(title, policy) {
  const write = (name) => ({ name: 'Write', input: { file_path: join(root, name), content: 'hello\n' } });
  const session = await createSession({
    provider: scriptedProvider([{ toolCalls: [write('notes.md'), write('server.key')] }, 'Done.']),
    model: 'scripted',
    defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
    ...policy,
  });
  console.log(`\n${title}`);
  try {
    await session.send('Write both files.');
    for await (const event of session.stream()) {
      if (event.type === 'tool_result')
        console.log(`  ${event.isError ? 'refused' : 'ran'}: ${JSON.stringify(event.output)}`);
    }
  } finally {
    await session.close();
  }
  console.log(`  files now: ${readdirSync(root).join(', ') || 'none'}`);
  for (const name of readdirSync(root)) rmSync(join(root, name));
}

try {
  // Writing needs a confirmation in mode `default`. Nobody is there to give it, so both calls are refused, and the
  // model is told why.
  await run('nobody to ask', {});

  // Edits run by themselves in mode `autoEdit`, except for files that hold keys.
  await run('mode autoEdit', { permissionMode: 'autoEdit' });

  // Confirmation in code: what a dialog or a chat message would do in an application. A rejection ends the request
  // after its turn, so that a model does not try again and again.
  await run('a confirmation handler', {
    confirmationHandler: {
      async requestConfirmation({ message, affectedFiles = [] }) {
        const approved = affectedFiles.every((file) => file.endsWith('.md'));
        console.log(`  asked: ${message.split('\n')[0]} → ${approved ? 'yes' : 'no'}`);
        return approved
          ? { approved, scope: 'once' }
          : { approved, reason: `${affectedFiles.map((f) => basename(f))} is not for you` };
      },
    },
  });

  // A handler decides before the mode does. These combine: the first one that denies or asks wins.
  await run('handlers combined', {
    permissionHandler: createCompositePermissionHandler([
      createPathSafetyPermissionHandler(),
      createModePermissionHandler('autoEdit'),
    ]),
    permissionMode: 'autoEdit',
  });
} finally {
  rmSync(root, { recursive: true, force: true });
}
