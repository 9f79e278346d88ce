// Handlers, their factories, confirmation.

import {
  createCompositePermissionHandler,
  createModePermissionHandler,
  createPathSafetyPermissionHandler,
  createRuleBasedPermissionHandler,
  PermissionDecision,
  PermissionMode,
  ToolKind,
  type ConfirmationHandler,
  type JsonObject,
  type PermissionHandler,
  type PermissionHandlerRequest,
  type PermissionResult,
  type PermissionUpdate,
  type ToolSideEffect,
} from '@blade-ai/agent-sdk';
import { typeOf } from './expect.js';

const handler: PermissionHandler = async (request) => {
  typeOf(request.toolName).is<string>();
  typeOf(request.input).is<JsonObject>();
  typeOf(request.signal).is<AbortSignal>();
  typeOf(request.affectedPaths).is<string[]>();
  typeOf(request.toolKind).is<ToolKind>();
  typeOf(request.toolMeta.sideEffect).is<ToolSideEffect>();
  typeOf(request.sessionApproved).is<boolean | undefined>();
  if (request.toolMeta.isReadOnly) return { behavior: PermissionDecision.ALLOW };
  if (request.toolKind === 'execute') return { behavior: 'ask', message: 'really?' };
  return { behavior: 'deny', message: 'no', interrupt: true };
};
// @ts-expect-error a handler is asynchronous
const synchronous: PermissionHandler = () => ({ behavior: 'allow' });
// @ts-expect-error a denial has a message
const silent: PermissionHandler = async () => ({ behavior: 'deny' });
// @ts-expect-error only an agent's callback may answer with a word
const word: PermissionHandler = async () => 'allow';
// @ts-expect-error no such decision
const maybe: PermissionHandler = async () => ({ behavior: 'maybe' });
// @ts-expect-error an ask changes no input
const asking: PermissionResult = { behavior: 'ask', updatedInput: {} };
void [synchronous, silent, word, maybe, asking];

const request: PermissionHandlerRequest = {
  toolName: 'T',
  input: {},
  signal: new AbortController().signal,
  affectedPaths: [],
  toolKind: ToolKind.Write,
  toolMeta: { sideEffect: 'pure', isReadOnly: false, isConcurrencySafe: false, isDestructive: false },
};
request.toolMeta.paths = [{ resolved: '/w/a' }, { resolved: '/w/b', also: ['b'], given: ['./b'] }];
request.toolMeta.aliases = ['U'];
// @ts-expect-error a path has a resolved name
request.toolMeta.paths = [{ also: ['a'] }];
// @ts-expect-error a raw literal is not a kind
request.toolKind = 'write';
const result = await createCompositePermissionHandler(
  [
    undefined,
    handler,
    createRuleBasedPermissionHandler({ allow: ['Bash:npm test*'], ask: ['Bash'], deny: ['*'] }),
    createPathSafetyPermissionHandler({ explicitAllowRules: ['Read:/srv/.env'] }),
    createPathSafetyPermissionHandler(),
    createModePermissionHandler(PermissionMode.DEFAULT),
    createModePermissionHandler('plan'),
    createModePermissionHandler(),
  ],
  'deny-wins',
)(request);
typeOf(result).is<PermissionResult>();
if (result.behavior === 'allow') typeOf(result.updatedInput).is<JsonObject | undefined>();
else if (result.behavior === 'deny') typeOf(result.message).is<string>();
else typeOf(result.message).is<string | undefined>();
// @ts-expect-error no such strategy
createCompositePermissionHandler([handler], 'last-wins');
// @ts-expect-error no such mode
createModePermissionHandler('bypass');

const updates: PermissionUpdate[] = [
  { type: 'addRules', behavior: 'allow', rules: [{ toolName: 'Bash', ruleContent: 'npm test' }] },
  { type: 'removeRules', rules: [{ toolName: 'Bash' }] },
];
// @ts-expect-error added rules say what they do
const incomplete: PermissionUpdate = { type: 'addRules', rules: [] };
void [updates, incomplete];

const confirmation: ConfirmationHandler = {
  async requestConfirmation({ message, toolName, args, abortSignal, kind }) {
    typeOf(message).is<string>();
    typeOf(args).is<JsonObject | undefined>();
    typeOf(abortSignal).is<AbortSignal | undefined>();
    typeOf(kind).is<ToolKind | undefined>();
    return toolName === 'Write' ? { approved: true, scope: 'session' } : { approved: false, reason: 'not now' };
  },
};
const unanswered: ConfirmationHandler = {
  // @ts-expect-error an answer says whether it approves
  requestConfirmation: async () => ({ scope: 'once' }),
};
void [confirmation, unanswered];
