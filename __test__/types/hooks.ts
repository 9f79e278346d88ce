// What hooks are called with and what they answer.

import { definePlugin, HookEvent, type HookCallback, type HookInput, type InlineHooks } from '@blade-ai/agent-sdk';

const hooks: InlineHooks = {
  UserPromptSubmit: [
    async ({ userPrompt, imageCount }) => ({ action: 'continue', reason: `${userPrompt} ${imageCount}` }),
  ],
  PostToolUseFailure: [
    async ({ error, toolOutput }) => ({ action: 'continue', modifiedOutput: [error.message, toolOutput] }),
  ],
  [HookEvent.SessionEnd]: [
    async ({ reason, abortSignal }) => ({ action: abortSignal.aborted ? 'skip' : 'continue', reason }),
  ],
};
definePlugin({ name: 'p', hooks });

const any: HookCallback = async (input) => {
  if (input.event === 'PreToolUse') return { action: 'continue', modifiedInput: input.toolInput };
  // @ts-expect-error a message has no tool
  if (input.event === 'UserPromptSubmit') return { action: 'continue', reason: input.toolName };
  return { action: 'continue' };
};
void any;

// @ts-expect-error there is no such event
const unknown: InlineHooks = { BeforeTool: [] };
void unknown;
// @ts-expect-error an answer says what shall happen
const silent: HookCallback<'PreToolUse'> = async () => ({ reason: 'x' });
void silent;
// @ts-expect-error the fields belong to the event
const wrong = (input: HookInput<'SessionStart'>) => input.toolName;
void wrong;
// @ts-expect-error a plugin has a name
definePlugin({ hooks });
