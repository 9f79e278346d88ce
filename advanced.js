// Low-level entry: everything of the root, with Sessions of the local profile and the built-in tools.

export * from './index.js';
export { getBuiltinTools } from './js/builtin-tools.js';
export {
  createSession,
  createSession as createNodeSession,
  prompt,
  prompt as promptNode,
} from './js/local-profile.js';
export { MemoryManager } from './js/memory.js';
export { createSession as createServerSession, prompt as promptServer } from './js/server-profile.js';
