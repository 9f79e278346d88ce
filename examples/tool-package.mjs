// A reusable tool package. By convention it is called `blade-tool-<name>` (here it would be `blade-tool-notes`), exports
// a factory, and imports nothing of the SDK but its root entry. The lower half is the application that uses it.

import { createAgent, defineTool, ToolKind, ToolSideEffect } from '@blade-ai/agent-sdk';
import { scriptedProvider } from '@blade-ai/agent-sdk/testing';
import Type from 'typebox';

/**
 * Tools over a store of notes. What they need is handed in, so that two agents in one process can have two stores.
 *
 * @param {{ store: Map<string, string> }} options
 */
export function createNotesTools({ store }) {
  const saveNote = defineTool({
    name: 'SaveNote',
    description: 'Save a note under a title; a note of the same title is replaced',
    parameters: Type.Object({
      title: Type.String({ minLength: 1, description: 'Title of the note' }),
      text: Type.String({ description: 'The note' }),
    }),
    kind: ToolKind.Write,
    sideEffect: ToolSideEffect.IDEMPOTENT,
    async execute({ title, text }) {
      const replaced = store.has(title);
      store.set(title, text);
      return { title, replaced };
    },
  });

  const findNotes = defineTool({
    name: 'FindNotes',
    description: 'Find notes by a word in their title or text',
    parameters: Type.Object({
      word: Type.String({ minLength: 1 }),
      limit: Type.Integer({ minimum: 1, maximum: 50, default: 10 }),
    }),
    kind: ToolKind.ReadOnly,
    sideEffect: ToolSideEffect.PURE,
    async execute({ word, limit }) {
      const found = [...store].filter(([title, text]) => `${title} ${text}`.includes(word));
      // Throwing is how a tool fails: the model reads the message and can try something else.
      if (found.length === 0) throw new Error(`no note has the word "${word}"; there are ${store.size} notes`);
      return found.slice(0, limit).map(([title, text]) => ({ title, text }));
    },
  });

  return [saveNote, findNotes];
}

// ---- the application

const store = new Map();
const agent = await createAgent({
  provider: scriptedProvider([
    { toolCalls: [{ name: 'SaveNote', input: { title: 'Milk', text: 'buy two litres' } }] },
    // A missing `limit` is filled in from the schema; an empty word does not fit it and never reaches the tool.
    {
      toolCalls: [
        { name: 'FindNotes', input: { word: 'litres' } },
        { name: 'FindNotes', input: { word: '' } },
      ],
    },
    'You wanted to buy two litres of milk.',
  ]),
  model: 'scripted',
  tools: createNotesTools({ store }),
  // Saving is a write: in mode `default` it would ask somebody.
  advanced: { permission: 'accept-edits' },
});

try {
  const response = await agent.send('Remember the milk, then tell me what I wanted to buy.');
  response.on('tool_result', ({ name, isError, output }) => {
    console.log(
      `${name} ${isError ? 'failed' : 'gave'}: ${typeof output === 'string' ? output : JSON.stringify(output)}`,
    );
  });
  console.log(await response.text());
} finally {
  await agent.close();
}
