// Constants of the public surface. Values are contract.

export const ToolKind = Object.freeze({ ReadOnly: 'readonly', Write: 'write', Execute: 'execute' });

export const ToolSideEffect = Object.freeze({
  PURE: 'pure',
  IDEMPOTENT: 'idempotent',
  NON_IDEMPOTENT: 'non_idempotent',
});

export const ToolErrorType = Object.freeze({
  VALIDATION_ERROR: 'validation_error',
  PERMISSION_DENIED: 'permission_denied',
  EXECUTION_ERROR: 'execution_error',
  INTERRUPTED: 'interrupted',
  TIMEOUT_ERROR: 'timeout_error',
  NETWORK_ERROR: 'network_error',
});

export const PermissionMode = Object.freeze({ DEFAULT: 'default', AUTO_EDIT: 'autoEdit', YOLO: 'yolo', PLAN: 'plan' });

export const PermissionDecision = Object.freeze({ ALLOW: 'allow', DENY: 'deny', ASK: 'ask' });

export const InputPriority = Object.freeze({ NOW: 'now', NEXT: 'next', LATER: 'later' });

export const MessageRole = Object.freeze({ SYSTEM: 'system', USER: 'user', ASSISTANT: 'assistant', TOOL: 'tool' });

export const HookEvent = Object.freeze({
  SessionStart: 'SessionStart',
  UserPromptSubmit: 'UserPromptSubmit',
  PreToolUse: 'PreToolUse',
  PermissionRequest: 'PermissionRequest',
  PostToolUse: 'PostToolUse',
  PostToolUseFailure: 'PostToolUseFailure',
  TaskCompleted: 'TaskCompleted',
  SessionEnd: 'SessionEnd',
});

export const SessionStreamEventType = Object.freeze({
  TURN_START: 'turn_start',
  TURN_END: 'turn_end',
  TURN_INTERRUPTED: 'turn_interrupted',
  INPUT_APPLIED: 'input_applied',
  CONTENT: 'content',
  THINKING: 'thinking',
  TOOL_USE: 'tool_use',
  TOOL_PROGRESS: 'tool_progress',
  TOOL_MESSAGE: 'tool_message',
  TOOL_RUNTIME_PATCH: 'tool_runtime_patch',
  TOOL_CONTEXT_PATCH: 'tool_context_patch',
  TOOL_NEW_MESSAGES: 'tool_new_messages',
  TOOL_PERMISSION_UPDATES: 'tool_permission_updates',
  TOOL_RESULT: 'tool_result',
  USAGE: 'usage',
  RESULT: 'result',
  ERROR: 'error',
});

export const PROVIDER_TYPES = Object.freeze([
  'openai',
  'anthropic',
  'azure-openai',
  'gemini',
  'deepseek',
  'openai-compatible',
]);

export const isBuiltinProviderType = (value) => PROVIDER_TYPES.includes(value);

export const CONVERSATION_MESSAGE_SOURCES = Object.freeze(['catalog', 'tool_injection', 'compaction_summary']);

export const isConversationMessageSource = (value) => CONVERSATION_MESSAGE_SOURCES.includes(value);
