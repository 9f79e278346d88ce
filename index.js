// Public entry of @blade-ai/agent-sdk: agents, tool authoring, and Sessions of the server profile.

export { AgentResponse, createAgent } from './js/agent.js';
export * from './js/constants.js';
export { createContextSnapshot, hasFilesystemCapability, mergeContext } from './js/context.js';
export {
  AbortError,
  ConfigError,
  getErrorCode,
  getErrorMessage,
  getErrorName,
  HookTimeoutError,
  ModelTimeoutError,
  PermissionDeniedError,
  ProviderRegistryError,
  SdkError,
  SessionHandoffError,
  SessionInputError,
  ToolExecutionError,
  toError,
} from './js/errors.js';
export { createSession, prompt } from './js/server-profile.js';
export { definePlugin } from './js/hooks.js';
export * from './js/ids.js';
export { createToolLimiter } from './js/limiter.js';
export { gracefulShutdown, registerCleanup, resetCleanupRegistry } from './js/lifecycle.js';
export { composeMiddleware } from './js/middleware.js';
export { wrapModelService } from './js/model-service.js';
export {
  createCompositePermissionHandler,
  createModePermissionHandler,
  createPathSafetyPermissionHandler,
  createRuleBasedPermissionHandler,
} from './js/permissions.js';
export { collectToolExecution, completeToolExecution, defineTool } from './js/tool.js';
