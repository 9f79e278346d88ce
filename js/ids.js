// Branded ids. At run time an id is an ordinary string (or number); the constructors only check it.

const text = (name) =>
  ({
    [name]: (value) => {
      if (typeof value !== 'string' || value === '') throw new TypeError(`${name} must be a non-empty string`);
      return value;
    },
  })[name];

const integer = (name) =>
  ({
    [name]: (value) => {
      if (!Number.isSafeInteger(value) || value < 0) throw new TypeError(`${name} must be a non-negative integer`);
      return value;
    },
  })[name];

export const AgentId = text('AgentId');
export const CommandId = text('CommandId');
export const CredentialLeaseId = text('CredentialLeaseId');
export const EventId = text('EventId');
export const EventSequence = integer('EventSequence');
export const ExecutionCheckpointId = text('ExecutionCheckpointId');
export const ExecutionId = text('ExecutionId');
export const ExecutionLeaseId = text('ExecutionLeaseId');
export const FencingToken = integer('FencingToken');
export const InputId = text('InputId');
export const MessageId = text('MessageId');
export const ModelAttemptId = text('ModelAttemptId');
export const PartId = text('PartId');
export const PermissionRequestId = text('PermissionRequestId');
export const RequestId = text('RequestId');
export const SpanId = text('SpanId');
export const ToolAttemptId = text('ToolAttemptId');
export const ToolUseId = text('ToolUseId');
export const TraceEventId = text('TraceEventId');
export const TraceId = text('TraceId');
export const TurnId = text('TurnId');
export const WorkerId = text('WorkerId');

/** A Session id is used in file names, so it must be one safe path segment. */
export function SessionId(value) {
  if (typeof value !== 'string' || value === '' || value === '.' || value === '..' || /[/\\\0]/.test(value)) {
    throw new TypeError('SessionId must be a non-empty single path segment');
  }
  return value;
}
