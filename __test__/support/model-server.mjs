// A chat completions server on the loopback interface. It checks every request as a strict provider would, answers
// from a script, faults included, and keeps a journal.

import { createServer } from 'node:http';

const ROLES = ['system', 'user', 'assistant', 'tool'];

const SIGNATURES = {
  'image/png': [0x89, 0x50, 0x4e, 0x47],
  'image/jpeg': [0xff, 0xd8, 0xff],
  'image/gif': [0x47, 0x49, 0x46, 0x38],
  'image/webp': [0x52, 0x49, 0x46, 0x46],
};

/** Everything that is wrong with the body of a request, as sentences. */
export function violationsOf(body) {
  const wrong = [];
  const say = (text) => wrong.push(text);
  if (typeof body.model !== 'string' || body.model === '') say('model must be a non-empty string');
  if (body.stream !== true) say('stream must be true');
  if (!Array.isArray(body.messages) || body.messages.length === 0) return [...wrong, 'messages must not be empty'];
  checkMessages(body.messages, say);
  if (body.tools !== undefined) checkTools(body.tools, say);
  return wrong;
}

function checkMessages(messages, say) {
  const seen = new Set();
  let open = new Set();
  for (const [at, message] of messages.entries()) {
    const where = `messages[${at}]`;
    if (!ROLES.includes(message.role)) say(`${where} has the role ${message.role}`);
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) say(`${where} answers no open call: ${message.tool_call_id}`);
      if (typeof message.content !== 'string') say(`${where} is a tool result without text`);
      continue;
    }
    if (open.size > 0) say(`${where} comes before the results of ${[...open].join(', ')}`);
    open = new Set();
    if (message.role === 'assistant') {
      for (const call of message.tool_calls ?? []) {
        if (typeof call.id !== 'string' || call.id === '') say(`${where} has a call without an id`);
        if (seen.has(call.id)) say(`${where} uses the id ${call.id} again`);
        seen.add(call.id);
        open.add(call.id);
        if (call.type !== 'function' || typeof call.function?.name !== 'string') say(`${where} has a malformed call`);
        checkArguments(call.function?.arguments, where, say);
      }
      if (!message.tool_calls?.length && typeof message.content !== 'string') say(`${where} says nothing`);
    } else {
      checkContent(message.content, where, say);
    }
  }
  if (open.size > 0) say(`calls without a result: ${[...open].join(', ')}`);
}

function checkArguments(text, where, say) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('no object');
  } catch {
    say(`${where} has arguments that are not the JSON text of an object: ${text}`);
  }
}

function checkContent(content, where, say) {
  if (typeof content === 'string') return;
  if (!Array.isArray(content) || content.length === 0) {
    say(`${where} has content that is neither text nor parts`);
    return;
  }
  for (const part of content) {
    if (part.type === 'text' && typeof part.text === 'string') continue;
    if (part.type !== 'image_url') say(`${where} has a part of type ${part.type}`);
    else checkImage(part.image_url?.url, where, say);
  }
}

function checkImage(url, where, say) {
  const match = /^data:(image\/[a-z]+);base64,([A-Za-z0-9+/]+={0,2})$/.exec(url ?? '');
  if (match === null) {
    if (!/^https?:/.test(url ?? '')) say(`${where} has an image that is no data URL`);
    return;
  }
  const bytes = Buffer.from(match[2], 'base64');
  const signature = SIGNATURES[match[1]];
  if (!signature?.every((byte, at) => bytes[at] === byte)) say(`${where} has an image whose bytes are no ${match[1]}`);
}

function checkTools(tools, say) {
  const names = new Set();
  if (!Array.isArray(tools) || tools.length === 0) say('tools must be a non-empty list or absent');
  for (const { type, function: declared } of tools) {
    const name = declared?.name;
    if (type !== 'function' || !/^[a-zA-Z0-9_-]{1,64}$/.test(name ?? '')) say(`tool ${name} is malformed`);
    if (names.has(name)) say(`tool ${name} is declared twice`);
    names.add(name);
    if (typeof declared?.description !== 'string') say(`tool ${name} has no description`);
    const { parameters } = declared ?? {};
    if (parameters === null || typeof parameters !== 'object' || parameters.type !== 'object') {
      say(`tool ${name} has parameters that are no object schema`);
    }
  }
}

/** One frame of a stream. */
export const frame = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;

const chunk = (delta, finish = null) => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

let nextCall = 0;

/** The frames of a well-formed answer. */
export function framesOf({ text = [], thinking = [], toolCalls = [], usage, finish }) {
  const frames = [
    ...[thinking].flat().map((delta) => frame(chunk({ reasoning_content: delta }))),
    ...[text].flat().map((delta) => frame(chunk({ content: delta }))),
    ...toolCalls.map(({ id = `call_${nextCall++}`, name, input = {} }, index) => {
      const args = typeof input === 'string' ? input : JSON.stringify(input);
      return frame(chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: args } }] }));
    }),
    frame(chunk({}, finish ?? (toolCalls.length > 0 ? 'tool_calls' : 'stop'))),
  ];
  if (usage !== false) {
    const counts = usage ?? { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 };
    frames.push(frame({ id: 'c1', object: 'chat.completion.chunk', model: 'm', choices: [], usage: counts }));
  }
  return [...frames, frame('[DONE]')];
}

/** The raw bytes of an answer in the given pieces, each in a packet of its own. */
async function sendPieces(response, pieces) {
  for (const piece of pieces) {
    if (response.destroyed) return;
    response.write(piece);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function answerWith(response, answer) {
  if (typeof answer === 'string' || answer.text || answer.toolCalls || answer.thinking) {
    const parts = typeof answer === 'string' ? { text: answer } : answer;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(framesOf(parts).join(''));
    return;
  }
  const { status = 200, type, headers = {}, body, pieces, ending = 'end', silent = false } = answer;
  if (silent) return;
  response.writeHead(status, {
    'content-type': type ?? (pieces ? 'text/event-stream' : 'application/json'),
    ...headers,
  });
  response.flushHeaders();
  if (pieces !== undefined) await sendPieces(response, pieces);
  else if (body !== undefined) response.write(typeof body === 'string' ? body : JSON.stringify(body));
  if (ending === 'end') response.end();
  // Long enough for what was written to have left.
  if (ending === 'break') setImmediate(() => setImmediate(() => response.socket?.resetAndDestroy()));
}

/**
 * Starts a server. `script` is a list of answers, one for each request, or a function of the request.
 *
 * An answer is a text; `{ text, thinking, toolCalls, usage, finish }`; or, for everything that can go wrong,
 * `{ status, type, headers, body | pieces, ending: 'end' | 'break' | 'hang', silent }`.
 */
export async function startModelServer(script) {
  const journal = [];
  const violations = [];
  let closedEarly = 0;
  const next = typeof script === 'function' ? script : (_, at) => script[at];
  const server = createServer(async (request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) closedEarly++;
    });
    const parts = [];
    for await (const part of request) parts.push(part);
    const text = Buffer.concat(parts).toString();
    const entry = { method: request.method, url: request.url, headers: request.headers, text, at: performance.now() };
    journal.push(entry);
    let answer;
    try {
      entry.body = JSON.parse(text);
      if (request.method !== 'POST') violations.push(`the method is ${request.method}`);
      const wrong = violationsOf(entry.body);
      violations.push(...wrong);
      if (wrong.length > 0) answer = { status: 400, body: { error: { message: wrong.join('; ') } } };
    } catch (error) {
      violations.push(`the body is not JSON: ${error.message}`);
      answer = { status: 400, body: { error: { message: error.message } } };
    }
    answer ??= (await next(entry, journal.length - 1)) ?? {
      status: 400,
      body: { error: { message: `no answer is left for request ${journal.length}` } },
    };
    await answerWith(response, answer);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    url: `http://127.0.0.1:${server.address().port}/v1`,
    journal,
    violations,
    get closedEarly() {
      return closedEarly;
    },
    close,
  };
}
