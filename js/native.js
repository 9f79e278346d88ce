// The native addon. `native.cjs` is generated: it picks the package of this platform and loads it.

import { createRequire } from 'node:module';
import process from 'node:process';

const require = createRequire(import.meta.url);

/** Name of the package that holds the addon of this machine. Only failures need it: detecting the C library is slow. */
function platformPackage() {
  const { platform, arch } = process;
  let abi = '';
  if (platform === 'win32') abi = '-msvc';
  if (platform === 'linux') abi = process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl';
  return `@blade-ai/agent-sdk-${platform}-${arch}${abi}`;
}

/** Why the addon does not load, and the command that mends it. */
function explain() {
  const { version, optionalDependencies } = require('../package.json');
  const name = platformPackage();
  if (!(name in optionalDependencies)) {
    const supported = Object.keys(optionalDependencies).map((key) => key.replace('@blade-ai/agent-sdk-', ''));
    return (
      `@blade-ai/agent-sdk has no native addon for this platform (${name} does not exist); ` +
      `supported: ${supported.join(', ')}`
    );
  }
  // The generated loader tries several places and its error speaks of all of them; this package is the one that counts.
  try {
    require(name);
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') {
      const reason = error.message.split('\n')[0];
      return `the native addon in ${name} does not load: ${reason}. Reinstall it with: npm i ${name}@${version}`;
    }
    return (
      `@blade-ai/agent-sdk cannot find its native addon: ${name} is not installed or holds no binary. ` +
      `Get it with: npm i ${name}@${version}\n` +
      'It is an optional dependency. npm leaves it out when installing with --omit=optional (or --no-optional), or ' +
      'with a lock file or a node_modules folder made on another platform (then delete both and install again). ' +
      'In a checkout of the SDK itself, npm run build makes it.'
    );
  }
  return `@blade-ai/agent-sdk cannot load its native addon although ${name} is in order; see the cause`;
}

function load() {
  try {
    return require('../native.cjs');
  } catch (cause) {
    throw Object.assign(new Error(explain(), { cause }), { code: 'NATIVE_ADDON_MISSING' });
  }
}

/** The functions and classes of the addon, as declared in `native.d.cts`. */
export const native = load();
