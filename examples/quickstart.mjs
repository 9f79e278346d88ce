// A whole agent Session, offline: a scripted model looks around the current directory with built-in tools and one tool
// of ours. To talk to a real model, replace `provider` and `model`; nothing else changes.
//
//   npm run quickstart                                              in a checkout of this repository
//   node node_modules/@blade-ai/agent-sdk/examples/quickstart.mjs   in a project that has installed the package

import process from 'node:process';
import { defineTool, ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import { createSession } from '@blade-ai/agent-sdk/advanced';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';

const root = process.cwd();

/** A tool of our own. The schema types nothing here; with TypeBox it would type `text` (see the README). */
const countWords = defineTool({
  name: 'CountWords',
  description: 'Count the words and lines of a text',
  parameters: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  kind: ToolKind.ReadOnly,
  sideEffect: ToolSideEffect.PURE,
  async execute({ text }) {
    const words = text.split(/\s+/).filter(Boolean).length;
    return { words, lines: text.split('\n').length };
  },
});

/** What the last calls of a tool gave, as the model was told. */
const results = ({ messages }, name) =>
  messages.filter((message) => message.role === 'tool' && message.name === name).map(({ content }) => content);

/** The script: each entry answers one call of the model, here as a function of what the tools have found. */
const provider = scriptedProvider([
  {
    text: ['I will see ', 'which files ', 'are here.'],
    toolCalls: [{ name: 'Glob', input: { pattern: '**/*.{md,json,js,mjs,ts,rs}', max_results: 200 } }],
  },
  (request) => {
    const [listing] = results(request, 'Glob');
    const paths = [...listing.matchAll(/^- (.+)$/gm)].map(([, path]) => path);
    const path = ['README.md', 'package.json'].find((name) => paths.includes(name)) ?? paths[0];
    const toolCalls = [
      { name: 'Grep', input: { pattern: 'agent', '-i': true, output_mode: 'count', head_limit: 5 } },
      ...(path ? [{ name: 'Read', input: { file_path: `${root}/${path}`, offset: 0, limit: 5 } }] : []),
    ];
    return { text: ['Two things at once: ', 'search all files, read one.'], toolCalls };
  },
  (request) => {
    const [text = ''] = results(request, 'Read');
    return { text: 'Now a tool of this program.', toolCalls: [{ name: 'CountWords', input: { text } }] };
  },
  (request) => {
    const [counted] = results(request, 'CountWords');
    const files = JSON.parse(results(request, 'Grep')[0]);
    const { words, lines } = JSON.parse(counted);
    const mentions = files.reduce((sum, { count }) => sum + count, 0);
    return {
      text: ['I read ', `${lines} lines `, `with ${words} words, `, `and found ${mentions} lines `, 'about agents.'],
    };
  },
]);

const session = await createSession({
  provider,
  model: 'scripted',
  tools: [countWords],
  defaultContext: { capabilities: { filesystem: { roots: [root], cwd: root } } },
});

const oneLine = (value) => {
  const text = (typeof value === 'string' ? value : JSON.stringify(value)).replaceAll(/\s+/g, ' ').trim();
  return text.length > 110 ? `${text.slice(0, 109)}…` : text;
};

try {
  const question = 'What is in this directory?';
  console.log(`user      ${question}`);
  await session.send(question);
  let streaming = false;
  for await (const event of session.stream()) {
    if (event.type === 'content') {
      process.stdout.write(streaming ? event.delta : `model     ${event.delta}`);
      streaming = true;
      continue;
    }
    if (streaming) process.stdout.write('\n');
    streaming = false;
    switch (event.type) {
      case 'turn_start':
        console.log(`turn ${event.turn}`);
        break;
      case 'tool_use':
        console.log(`call      ${event.name} ${oneLine(event.input)}`);
        break;
      case 'tool_progress':
        console.log(`progress  ${event.name} ${oneLine(event.progress.message ?? event.progress.data ?? '')}`);
        break;
      case 'tool_result':
        console.log(`${event.isError ? 'failed   ' : 'answer   '} ${event.name} ${oneLine(event.output)}`);
        break;
      case 'usage':
        console.log(`usage     ${event.usage.totalTokens} tokens in all`);
        break;
      case 'result':
        console.log(`result    ${event.content}`);
        break;
      case 'error':
        console.error(`error     ${event.code}: ${event.message}`);
        process.exitCode = 1;
        break;
    }
  }
} finally {
  await session.close();
}
