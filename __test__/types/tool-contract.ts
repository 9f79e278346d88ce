// The contract around tool calls: the observer of durable boundaries, and tools in the runtime protocol.

import type {
  PermissionRequestId,
  SessionOptions,
  ToolBehavior,
  ToolExecutionLifecycle,
  ToolExecutionStartedLifecycle,
  ToolInvocationLifecycle,
  ToolPermissionResolution,
  ToolScheduledLifecycle,
  ToolSettledLifecycle,
} from '@blade-ai/agent-sdk';
import { ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import type { RuntimeTool } from '@blade-ai/agent-sdk/advanced';
import Type from 'typebox';
import { typeOf } from './expect.js';

declare function store(record: unknown): Promise<string>;

const lifecycle: ToolExecutionLifecycle = {
  async onToolScheduled(event) {
    typeOf(event).is<ToolScheduledLifecycle>();
    await store(event.modelInput);
    return {
      async onPermissionRequested(details, input) {
        return (await store({ details, input })) as PermissionRequestId;
      },
      async onPermissionResolved(resolution) {
        typeOf(resolution).is<ToolPermissionResolution>();
        await store(resolution.decision);
      },
      async onExecutionStarted(event) {
        typeOf(event).is<ToolExecutionStartedLifecycle>();
        await store(event.sideEffect);
      },
    };
  },
  async onToolSettled(event) {
    typeOf(event).is<ToolSettledLifecycle>();
    if (event.result.status === 'error') await store(event.result.error.type);
  },
};

// Every callback may be left out, and an observer of a call too.
const ends: ToolExecutionLifecycle = { onToolSettled: async () => {} };
const none: ToolExecutionLifecycle = { onToolScheduled: async () => undefined };
const silent: ToolInvocationLifecycle = {};
export const options: Pick<SessionOptions, 'toolLifecycle'>[] = [lifecycle, ends, none].map((toolLifecycle) => ({
  toolLifecycle,
}));
export const observers = [silent];

const parameters = Type.Object({ verb: Type.String(), force: Type.Optional(Type.Boolean()) });

export const runtime: RuntimeTool<typeof parameters> = {
  name: 'Git',
  description: 'Runs git',
  parameters,
  kind: ToolKind.Execute,
  interruptBehavior: 'cancel',
  maxResultSizeChars: 30_000,
  resolveBehavior(params) {
    typeOf(params.verb).is<string>();
    return params.verb === 'log' ? { kind: ToolKind.ReadOnly, sideEffect: ToolSideEffect.PURE } : {};
  },
  async validate({ verb }, { signal }) {
    signal?.throwIfAborted();
    return verb === '' ? { message: 'verb must not be empty' } : undefined;
  },
  async *execute({ verb }) {
    yield { kind: 'progress', message: verb };
    return { status: 'success', model: verb };
  },
};

// @ts-expect-error A dimension that does not exist.
export const wrong: Partial<ToolBehavior> = { readOnly: true };
