// Which providers are scripted ones. Apart from the rest of the testing entry, so that a Session does not load it.

const scripts = new WeakMap();

/** The script behind a provider, if it is a scripted one. */
export const scriptOf = (provider) => scripts.get(provider);

export const setScript = (provider, script) => scripts.set(provider, script);
