// The embedded offline provider, for tests of agents.

export { scriptedProvider } from './js/scripted-provider.js';
