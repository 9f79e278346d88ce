// A scripted model on loopback, in a process of its own so that its work is not counted. It speaks streamed chat
// completions; the model name says what it does: `<script>?<name>=<number>&…`
//
//   deltas?count=20000&size=16&write=16384   text deltas; a socket write once that many bytes have come together
//   calls?turns=200&each=1                   that many turns of `each` calls of the tool `noop`, then the text "done"
//
// Prints its address as one line and ends with its standard input.

import { createServer } from 'node:http';
import { Readable } from 'node:stream';

const chunk = (delta, finish = null) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 0,
  model: 'scripted',
  choices: [{ index: 0, delta, finish_reason: finish }],
});

const frame = (data) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;

const USAGE = { ...chunk({}), choices: [], usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } };

function closing(finish) {
  return [chunk({}, finish), USAGE, '[DONE]'].map(frame);
}

/** Frames joined into the pieces that are written to the socket. */
function joined(frames, write) {
  const pieces = [];
  let open = '';
  for (const text of frames) {
    open += text;
    if (open.length >= write) {
      pieces.push(Buffer.from(open));
      open = '';
    }
  }
  if (open !== '') pieces.push(Buffer.from(open));
  return pieces;
}

/** Rendered once a script: the server must not be what limits. */
const rendered = new Map();

function deltas(model, { count, size, write = 16_384 }) {
  if (!rendered.has(model)) {
    const delta = frame(chunk({ content: 'x'.repeat(size) }));
    rendered.set(model, joined([...Array(count).fill(delta), ...closing('stop')], write));
  }
  return rendered.get(model);
}

function calls(messages, { turns, each = 1 }) {
  const asked = messages.findLastIndex((message) => message.role === 'user');
  const answered = messages.slice(asked).filter((message) => message.role === 'tool').length;
  if (answered >= turns * each) return joined([frame(chunk({ content: 'done' })), ...closing('stop')], Infinity);
  const call = (index) => ({
    index,
    id: `call_${answered + index}`,
    type: 'function',
    function: { name: 'noop', arguments: JSON.stringify({ i: answered + index }) },
  });
  const frames = Array.from({ length: each }, (_, index) => frame(chunk({ tool_calls: [call(index)] })));
  return joined([...frames, ...closing('tool_calls')], Infinity);
}

function answer({ model, messages }) {
  const [script, query] = model.split('?');
  const settings = Object.fromEntries([...new URLSearchParams(query)].map(([name, value]) => [name, Number(value)]));
  if (script === 'deltas') return deltas(model, settings);
  if (script === 'calls') return calls(messages, settings);
  throw new Error(`no script ${script}`);
}

const server = createServer(async (request, response) => {
  const body = [];
  for await (const part of request) body.push(part);
  request.socket.setNoDelay(true);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  Readable.from(answer(JSON.parse(Buffer.concat(body).toString()))).pipe(response);
});

server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
process.stdin.on('end', () => process.exit(0)).resume();
