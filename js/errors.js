// Error classes of the public surface, and how errors of the native core become them.

/** Marks errors of every copy of this package, so that `instanceof` works between copies. */
const MARK = Symbol.for('@blade-ai/agent-sdk.error');

/** Whether an error has this class or one derived from it in its list of marks. */
function isOne(Class, value) {
  const marks = value?.[MARK];
  return Array.isArray(marks) && marks.includes(Class.name);
}

export class SdkError extends Error {
  constructor(message, options = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = options.code ?? 'INTERNAL';
    if (options.status !== undefined) this.status = options.status;
    if (options.details !== undefined) this.details = options.details;
  }

  get [MARK]() {
    const marks = [];
    for (let c = this.constructor; typeof c === 'function' && c !== Error; c = Object.getPrototypeOf(c)) {
      marks.push(c.name);
    }
    return marks;
  }

  toJSON() {
    const { name, code, message, status, details, cause } = this;
    return {
      name,
      code,
      message,
      ...(status !== undefined && { status }),
      ...(details !== undefined && { details }),
      ...(cause !== undefined && { cause: describe(cause) }),
    };
  }

  static [Symbol.hasInstance](value) {
    // biome-ignore lint/complexity/noThisInStatic: `this` is the subclass that is asked
    return Function.prototype[Symbol.hasInstance].call(this, value) || isOne(this, value);
  }
}

export class AbortError extends Error {
  constructor(message = 'the operation was aborted', options) {
    super(message, options);
    this.name = 'AbortError';
    this.code = 'ABORT';
  }
}

export class ConfigError extends SdkError {
  constructor(message, options = {}) {
    super(message, { ...options, code: 'CONFIG_ERROR' });
  }
}

export class HookTimeoutError extends SdkError {
  constructor(message, options = {}) {
    super(message, { ...options, code: 'HOOK_TIMEOUT' });
  }
}

export class ModelTimeoutError extends SdkError {}

export class PermissionDeniedError extends SdkError {
  constructor(message, options = {}) {
    super(message, { ...options, code: 'PERMISSION_DENIED' });
  }
}

export class ProviderRegistryError extends SdkError {
  constructor(message, options = {}) {
    super(message, options);
    this.providerType = options.providerType ?? options.details?.providerType;
  }
}

export class SessionHandoffError extends SdkError {
  constructor(message, options = {}) {
    super(message, options);
    this.activeSubagentIds = Object.freeze([...(options.activeSubagentIds ?? [])]);
    this.activeShellIds = Object.freeze([...(options.activeShellIds ?? [])]);
  }
}

export class SessionInputError extends SdkError {}

export class ToolExecutionError extends SdkError {
  constructor(message, options = {}) {
    super(message, { ...options, code: 'TOOL_EXECUTION_ERROR' });
    this.toolName = options.toolName;
  }
}

/** Arguments of a built-in tool that was executed directly do not match its schema. */
export class ToolValidationError extends SdkError {
  constructor(message, options = {}) {
    super(message, { ...options, code: 'TOOL_VALIDATION_ERROR' });
    this.type = 'validation_error';
    this.issues = options.details?.issues ?? [];
  }
}

const CLASSES = {
  CONFIG_ERROR: ConfigError,
  HOOK_TIMEOUT: HookTimeoutError,
  MODEL_REQUEST_TIMEOUT: ModelTimeoutError,
  MODEL_STREAM_IDLE_TIMEOUT: ModelTimeoutError,
  PERMISSION_DENIED: PermissionDeniedError,
  PROVIDER_ADAPTER_NOT_FOUND: ProviderRegistryError,
  SESSION_REQUEST_MISMATCH: SessionInputError,
  SESSION_INPUT_OPTIONS_UNSUPPORTED: SessionInputError,
  SESSION_STEERING_UNAVAILABLE: SessionInputError,
  TOOL_VALIDATION_ERROR: ToolValidationError,
};

/** An error of the class that belongs to a code. */
export function errorOf({ code, message, status, details, cause }) {
  if (code === 'ABORT') return new AbortError(message);
  const Class = CLASSES[code] ?? SdkError;
  const options = { code };
  if (status != null) options.status = status;
  if (details != null) options.details = details;
  if (cause != null) options.cause = reviveCause(cause);
  return new Class(message, options);
}

/** The thrown error of a callback, back from its form as data. */
function reviveCause({ name, message, stack, code }) {
  const error = new Error(message);
  error.name = name || 'Error';
  if (stack) error.stack = stack;
  if (code) error.code = code;
  return error;
}

/** Calls a native function; what it throws becomes an error of the documented class. */
export function call(operation, ...args) {
  try {
    return operation(...args);
  } catch (thrown) {
    throw fromNative(thrown);
  }
}

function fromNative(thrown) {
  const text = thrown?.message;
  if (typeof text === 'string' && text.startsWith('{')) {
    try {
      return errorOf(JSON.parse(text));
    } catch {
      // Not one of ours: reported below as it is.
    }
  }
  return new SdkError(`the native core failed: ${text ?? thrown}`, { code: 'INTERNAL', cause: thrown });
}

/** Anything thrown, as plain data for the native core. Never throws itself, whatever getters and traps are in the way. */
export function describe(thrown) {
  if (!isErrorLike(thrown)) return { name: typeof thrown, message: printable(thrown) };
  const [name, message, stack, given] = ['name', 'message', 'stack', 'code'].map((key) => read(thrown, key));
  // The reason of an AbortSignal carries a number from the days of the DOM; ours is the same everywhere.
  const code = name === 'AbortError' && given === DOMException.ABORT_ERR ? 'ABORT' : given;
  return {
    name: typeof name === 'string' ? name : 'Error',
    message: message === undefined ? printable(thrown) : printable(message),
    ...(typeof stack === 'string' && { stack }),
    ...((typeof code === 'string' || typeof code === 'number') && { code: String(code) }),
  };
}

function isErrorLike(value) {
  try {
    return typeof value === 'object' && value !== null && 'message' in value;
  } catch {
    return false;
  }
}

function read(value, key) {
  try {
    return value[key];
  } catch {
    return undefined;
  }
}

function printable(value) {
  try {
    return typeof value === 'string' ? value : String(value);
  } catch {
    // `String` is the value's own code; so may be whatever names its kind.
  }
  try {
    return Object.prototype.toString.call(value);
  } catch {
    return `a value that cannot be shown (${typeof value})`;
  }
}

export function getErrorCode(error) {
  const code = error?.code;
  return typeof code === 'string' ? code : undefined;
}

export function getErrorMessage(error) {
  return describe(error).message;
}

export function getErrorName(error) {
  return typeof error?.name === 'string' ? error.name : 'Error';
}

export function toError(value) {
  return value instanceof Error ? value : new Error(printable(value), { cause: value });
}
