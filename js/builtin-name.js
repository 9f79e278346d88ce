// Which definitions are built-in tools: a Session that is handed one registers the native tool itself.

const names = new WeakMap();

export const markBuiltin = (definition) => names.set(definition, definition.name);

/** How a built-in definition is named to the native registry; undefined for the application's own. */
export function builtinName(definition) {
  const builtin = names.get(definition);
  return builtin === undefined ? undefined : { builtin };
}
