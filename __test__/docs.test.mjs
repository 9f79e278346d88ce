// Documentation that must keep up with the code, and links that must lead somewhere.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { getBuiltinTools } from '@blade-ai/agent-sdk/advanced';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const text = (...path) => readFileSync(join(checkout, ...path), 'utf8');

const documents = [
  ...readdirSync(checkout).filter((name) => name.endsWith('.md')),
  ...readdirSync(join(checkout, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];

/** Rows of the first table whose first cell is a name in backticks: name → the cells after it, without backticks. */
function rows(markdown) {
  const lines = [...markdown.matchAll(/^\| `(\w+)` \|(.*)\|$/gm)];
  return new Map(lines.map(([, name, rest]) => [name, rest.split('|').map((cell) => cell.trim().replaceAll('`', ''))]));
}

test('docs/tools.md has one row for each built-in tool, in order, with its group, kind and side effect', async () => {
  const declared = (await getBuiltinTools()).map(({ name, group, kind, sideEffect }) => [
    name,
    group,
    kind,
    sideEffect,
  ]);
  const documented = [...rows(text('docs', 'tools.md'))].map(([name, cells]) => [name, ...cells.slice(0, 3)]);
  assert.deepEqual(documented, declared);
});

test('docs/tools.md has a section for each built-in tool that names all of its arguments', async () => {
  const sections = new Map(
    text('docs', 'tools.md')
      .split(/^## /m)
      .map((section) => [section.slice(0, section.indexOf('\n')), section]),
  );
  for (const { name, parameters } of await getBuiltinTools()) {
    const section = sections.get(name);
    assert.ok(section, `docs/tools.md has no section for ${name}`);
    for (const argument of Object.keys(parameters.properties)) {
      assert.ok(section.includes(`\`${argument}\``), `the section of ${name} does not mention ${argument}`);
    }
  }
});

test('links between documents lead to files and headings that exist', () => {
  const anchor = (heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-');
  const anchors = (file) =>
    [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, heading]) => anchor(heading));
  for (const document of documents) {
    for (const [, target] of text(document).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path, fragment] = target.split('#');
      const file = path === '' ? join(checkout, document) : join(checkout, dirname(document), path);
      assert.ok(existsSync(file), `${document} links to ${target}, which does not exist`);
      if (fragment !== undefined) {
        assert.ok(anchors(file).includes(fragment), `${document} links to ${target}, which is no heading`);
      }
    }
  }
});

test('documents name only files that exist', () => {
  const named = /`((?:src|js|docs|examples|scripts|tests|__test__|npm)\/[\w./-]+)`/g;
  for (const document of documents) {
    for (const [, path] of text(document).matchAll(named)) {
      assert.ok(existsSync(join(checkout, path)), `${document} names ${path}, which does not exist`);
    }
  }
});

test('every dependency of Cargo.toml has a place in docs/dependencies.md', () => {
  const manifest = text('Cargo.toml');
  const dependencies = new Set();
  for (const [, body] of manifest.matchAll(/^\[(?:target\..+\.)?(?:build-)?dependencies\]\n((?:[^[\n].*\n|\n)*)/gm)) {
    for (const [, name] of body.matchAll(/^([\w-]+) = /gm)) dependencies.add(name);
  }
  assert.ok(dependencies.size > 20, [...dependencies].join());
  const table = text('docs/dependencies.md');
  const missing = [...dependencies].filter((name) => !table.includes(`\`${name}\``));
  assert.deepEqual(missing, [], 'a crate earns a row: purpose, alternative, weight');
  const named = [...table.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell]) => [...cell.matchAll(/`([\w-]+)`/g)]);
  const gone = named.map(([, name]) => name).filter((name) => !dependencies.has(name));
  assert.deepEqual(gone, [], 'rows of crates that are not used');
});

test('long documents stay readable', () => {
  const lines = (name) => text(name).trimEnd().split('\n').length;
  assert.ok(lines('ARCHITECTURE.md') <= 260, `ARCHITECTURE.md has ${lines('ARCHITECTURE.md')} lines`);
  assert.ok(lines('AGENTS.md') <= 120, `AGENTS.md has ${lines('AGENTS.md')} lines`);
});

test('the changelog begins with what is not released yet', () => {
  const headings = [...text('CHANGELOG.md').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  assert.equal(headings[0], 'Unreleased');
});

/** The sections of the guide to tools. */
const SECTIONS = [
  'Tools',
  'defineTool',
  'What you can omit',
  'Capabilities on demand',
  'Streaming contract',
  'ToolResult',
  'Runtime progress, messages, and effects',
  'Community tool package convention',
  'Interruption',
  'Side-effect contract',
  'ToolDefinition',
  'ExecutionContext',
  'Durable lifecycle boundaries',
  'Built-in tools',
  'Select tools',
  'Source policy',
  'Sentences of later parts',
];

/** The tables of the last chapter of docs/parity.md: section → rows of cells. */
function sentences() {
  const [, chapter] = text('docs', 'parity.md').split('\n## The contract, sentence by sentence\n');
  assert.equal(chapter.includes('\n## '), false, 'it is the last chapter');
  const [, ...sections] = chapter.split(/^### /m);
  return new Map(
    sections.map((section) => {
      const [name, ...lines] = section.split('\n');
      const [, , ...rows] = lines.filter((line) => line.startsWith('|'));
      // Cells hold no bar of their own: a row that has one has one cell too many.
      return [
        name,
        rows.map((row) =>
          row
            .slice(1, -1)
            .split('|')
            .map((cell) => cell.trim()),
        ),
      ];
    }),
  );
}

/** Whether a file holds a test: a JavaScript test, a Rust test, or the comment above what the compiler checks. */
function holds(file, name) {
  const source = text(file);
  if (file.endsWith('.rs')) return new RegExp(`#\\[(?:tokio::)?test\\b[^\\n]*\\n(?:async )?fn ${name}\\(`).test(source);
  if (file.endsWith('.ts')) return source.split('\n').includes(`// ${name}`);
  return ["'", '"', '`'].some((quote) => source.includes(`test(${quote}${name}${quote}`));
}

test('docs/parity.md names for each sentence of the guide to tools a test that exists', () => {
  const tables = sentences();
  assert.deepEqual([...tables.keys()], SECTIONS);
  for (const [section, rows] of tables) {
    const width = section === 'Sentences of later parts' ? 3 : 2;
    assert.ok(rows.length > 0, `${section} has no rows`);
    for (const row of rows) {
      assert.equal(row.length, width, `${section}: ${row.join(' | ')}`);
      for (const cell of row) assert.notEqual(cell, '', `${section}: an empty cell beside ${row.join(' ')}`);
      if (width === 3) {
        assert.ok(SECTIONS.includes(row[0]), `${row[0]} is no section`);
        continue;
      }
      for (const proof of row[1].split('<br>')) {
        const [, file, name] = /^`([^`]+)` › `([^`]+)`$/.exec(proof) ?? [];
        assert.ok(file, `${section}: "${proof}" names no file and test`);
        assert.ok(existsSync(join(checkout, file)), `${section}: ${file} does not exist`);
        assert.ok(holds(file, name), `${section}: ${file} has no test "${name}"`);
      }
    }
  }
});

test('a test that is named is found as a test, and nothing else is', () => {
  const tests = '__test__/docs.test.mjs';
  assert.ok(holds(tests, 'long documents stay readable'));
  assert.equal(holds(tests, 'long documents'), false);
  assert.ok(holds('tests/layering.rs', 'every_import_points_left'));
  assert.equal(holds('tests/layering.rs', 'every_import'), false);
  assert.equal(holds('tests/layering.rs', 'may_import'), false);
  assert.ok(holds('__test__/types/seed-contract.ts', 'ToolScheduledLifecycle'));
  assert.equal(holds('__test__/types/seed-contract.ts', 'ToolScheduled'), false);
});
