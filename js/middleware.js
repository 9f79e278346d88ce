// Onion composition of middleware.

export function composeMiddleware(middleware, terminal) {
  const layers = [...middleware];
  const run = (index, request) => {
    if (index === layers.length) return terminal(request);
    let called = false;
    return layers[index](request, (changed = request) => {
      if (called) throw new Error('next() called multiple times');
      called = true;
      return run(index + 1, changed);
    });
  };
  return (request) => run(0, request);
}

/** Middleware around tool calls, outermost first: that of the options, then that of the plugins in their order. */
export function toolMiddlewareOf({ middleware }, plugins) {
  return [...(middleware?.tool ?? []), ...plugins.flatMap((plugin) => plugin.middleware?.tool ?? [])];
}
