// The scripted provider on the JavaScript side: its native script and, where turns are functions, how they are called.

const scripts = new WeakMap();

/** The script behind a provider, if it is a scripted one. */
export const scriptOf = (provider) => scripts.get(provider);

export const setScript = (provider, script) => scripts.set(provider, script);
