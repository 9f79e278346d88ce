// Middleware around tool calls: composes the layers over the native call. Whose result counts is the core's rule.

import { composeMiddleware } from './middleware.js';
import { encode } from './json.js';

/** Runs a call inside of the layers. `core` starts the call itself and gives its steps. */
export function aroundTools(layers, core, request) {
  const run = composeMiddleware(layers, (inner) => execution(core, inner, request));
  return run(request);
}

/** The call itself, as the generator the innermost `next()` gives. It starts when it is first asked. */
async function* execution(core, { toolName, input, context }, given) {
  // An input that was not changed does not cross: numbers here hold less than the model's text may say.
  const changed = input === given.input ? null : encode(input, 'the input given to next()');
  core.start(String(toolName), context === given.context, changed);
  for (;;) {
    const step = await core.next();
    if ('done' in step) return step.done;
    yield step.yield;
  }
}
