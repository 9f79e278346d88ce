// The same agent against a real model: any server that speaks OpenAI's chat completions.
//
//   BASE_URL=http://127.0.0.1:8080/v1 MODEL=my-model API_KEY=… node examples/openai-compatible.mjs "your question"

import { createAgent, defineTool, SdkError, ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';

const { BASE_URL: baseUrl, MODEL: model, API_KEY: apiKey = '' } = process.env;
const question = process.argv[2] ?? 'What time is it in UTC? Use the tool.';

const now = defineTool({
  name: 'Now',
  description: 'The current date and time in UTC',
  parameters: { type: 'object', properties: {} },
  kind: ToolKind.ReadOnly,
  sideEffect: ToolSideEffect.PURE,
  async execute() {
    return new Date().toISOString();
  },
});

async function ask() {
  const agent = await createAgent({
    provider: 'openai-compatible',
    baseUrl,
    apiKey,
    model,
    tools: [now],
    systemPrompt: 'Answer in one sentence.',
  });
  try {
    const response = await agent.send(question);
    for await (const delta of response.textStream()) process.stdout.write(delta);
    process.stdout.write('\n');
  } catch (error) {
    if (!(error instanceof SdkError)) throw error;
    console.error(`${error.code}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    await agent.close();
  }
}

if (baseUrl && model) {
  await ask();
} else {
  console.log(`No server is configured, so nothing was sent. Set these variables and run it again:
  BASE_URL  base URL of the server, version segment included, for instance http://127.0.0.1:8080/v1
  MODEL     name of the model as the server knows it
  API_KEY   key, where the server wants one`);
}
