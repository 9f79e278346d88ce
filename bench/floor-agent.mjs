// The floor of the workloads with a model: the least JavaScript that does the work. Fetch, a reader of server-sent
// events, JSON.parse, tools called directly. No Session, permissions, validation, limits, retries or cancellation.

const NOOP = {
  type: 'function',
  function: {
    name: 'noop',
    description: 'Does nothing',
    parameters: { type: 'object', properties: { i: { type: 'integer' } }, required: ['i'] },
  },
};

/** The parsed data of each event of a response. */
async function* events(response) {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    let from = 0;
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', from)) {
      const data = text.slice(from + 'data: '.length, end);
      from = end + 2;
      if (data !== '[DONE]') yield JSON.parse(data);
    }
    text = text.slice(from);
  }
}

/** A conversation with the model; `execute` is the one tool it may call. */
export function floorAgent(url, model, execute) {
  const messages = [];

  async function turn(onDelta) {
    const response = await fetch(`${url}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer none' },
      body: JSON.stringify({ model, stream: true, messages, ...(execute && { tools: [NOOP] }) }),
    });
    let content = '';
    const calls = [];
    for await (const { choices } of events(response)) {
      const delta = choices[0]?.delta;
      if (delta?.content) {
        content += delta.content;
        onDelta?.(delta.content);
      }
      for (const {
        index,
        id,
        function: { name, arguments: json },
      } of delta?.tool_calls ?? []) {
        calls[index] = { id, type: 'function', function: { name, arguments: json } };
      }
    }
    messages.push({ role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) });
    return { content, calls };
  }

  async function run(message, onDelta) {
    messages.push({ role: 'user', content: message });
    for (;;) {
      const { content, calls } = await turn(onDelta);
      if (calls.length === 0) return content;
      const results = await Promise.all(calls.map((call) => execute(JSON.parse(call.function.arguments))));
      results.forEach((result, i) => {
        messages.push({ role: 'tool', tool_call_id: calls[i].id, content: String(result) });
      });
    }
  }

  return { run, async close() {} };
}
