// The two sides of a workload with a model. Each is imported in the process that measures it and in no other.

/** Opens a conversation: `open(url, model, execute, options)`. */
export const sides = {
  floor: async () => (await import('./floor-agent.mjs')).floorAgent,
  sdk: async () => (await import('./sdk-agent.mjs')).sdkAgent,
};
