// The contract of tools, sentence by sentence: packages of tools, as others publish and install them.
// docs/parity.md names the test of each sentence.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { hostPackage } from '../scripts/tasks.mjs';
import { quiet, run } from './support/program.mjs';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const source = (name) => join(checkout, '__test__', 'fixtures', 'packages', name);

/** The packages: folder → name. */
const PACKAGES = { 'blade-tool-jira': '@acme/blade-tool-jira', 'blade-tool-checksum': 'blade-tool-checksum' };

const read = (...path) => readFileSync(join(...path), 'utf8');
const manifestOf = (name) => JSON.parse(read(source(name), 'package.json'));

const INSTALL = [
  'install',
  '--offline',
  '--no-audit',
  '--no-fund',
  '--ignore-scripts',
  '--install-links',
  '--omit=optional',
];

/** Packs and installs folders into a project, without a network; npm checks their peers. Gives what went wrong. */
function install(project, folders) {
  const windows = process.platform === 'win32';
  const { status, stderr } = spawnSync('npm', [...INSTALL, ...folders], { cwd: project, shell: windows });
  return status === 0 ? '' : `npm ended with ${status}: ${stderr}`;
}

describe('Community tool package convention', () => {
  let project;

  before(() => {
    project = mkdtempSync(join(tmpdir(), 'tool-packages-'));
    writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }');
    const sdk = [checkout, join(checkout, 'node_modules', 'typebox')];
    assert.equal(install(project, [...sdk, ...Object.keys(PACKAGES).map(source)]), '');
    // The addon was built here and is too large to pack for a test.
    const { dir, manifest } = hostPackage();
    const addon = join(project, 'node_modules', ...manifest.name.split('/'));
    mkdirSync(dirname(addon), { recursive: true });
    symlinkSync(dir, addon, 'junction');
  });
  after(() => rmSync(project, { recursive: true, force: true }));

  const works = async (program, ...lines) => assert.deepEqual(await run(program, { cwd: project }), quiet(...lines));

  test('packages use the blade-tool-* naming convention in lowercase kebab-case, scoped and unscoped', () => {
    for (const [folder, name] of Object.entries(PACKAGES)) {
      assert.equal(manifestOf(folder).name, name);
      assert.match(name, /^(?:@[a-z0-9-]+\/)?blade-tool-[a-z0-9]+(?:-[a-z0-9]+)*$/);
    }
  });

  test('the package root exports a named factory or a stable tools array, which an installed SDK takes', async () => {
    await works(
      `
      import { tools as checksum } from 'blade-tool-checksum';
      import { createJiraTools } from '@acme/blade-tool-jira';
      const provider = scriptedProvider(['hello']);
      const tools = [...checksum, ...createJiraTools({ baseUrl: 'https://acme.example', token: 'secret' })];
      const session = await createSession({ provider, model: 'm', tools });
      await session.send('go');
      for await (const event of session.stream()) if (event.type === 'result') say(event.content);
      await session.close();
      say(provider.requests[0].tools.map(({ name }) => name).join());
      `,
      'hello',
      'Checksum,JiraAddComment,JiraGetIssue',
    );
  });

  test('tool packages depend on the root SDK entrypoint only; src/, dist/ and other private paths do not resolve', async () => {
    for (const folder of Object.keys(PACKAGES)) {
      const imported = [...read(source(folder), 'index.js').matchAll(/ from '([^']+)'/g)].map(([, from]) => from);
      const fromSdk = imported.filter((from) => from.startsWith('@blade-ai/'));
      assert.deepEqual(fromSdk, ['@blade-ai/agent-sdk']);
    }
    const paths = ['src/lib.rs', 'dist/index.js', 'js/session.js', 'js/tool.js', 'native.cjs', 'index.js'];
    await works(
      `
      for (const path of ${JSON.stringify(paths)}) {
        say(await import('@blade-ai/agent-sdk/' + path).then(() => path, (error) => error.code));
      }
      `,
      ...paths.map(() => 'ERR_PACKAGE_PATH_NOT_EXPORTED'),
    );
  });

  test('the peer dependency ^7.4.0 is met by this version, and another one is not', (t) => {
    for (const folder of Object.keys(PACKAGES)) {
      assert.equal(manifestOf(folder).peerDependencies['@blade-ai/agent-sdk'], '^7.4.0');
    }
    const other = mkdtempSync(join(tmpdir(), 'tool-packages-'));
    t.after(() => rmSync(other, { recursive: true, force: true }));
    writeFileSync(join(other, 'package.json'), '{ "private": true }');
    const folder = join(other, 'next');
    cpSync(source('blade-tool-checksum'), folder, { recursive: true });
    const manifest = manifestOf('blade-tool-checksum');
    manifest.peerDependencies['@blade-ai/agent-sdk'] = '^8.0.0';
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    const packages = [checkout, join(checkout, 'node_modules', 'typebox'), folder];
    assert.match(install(other, packages), /ERESOLVE/);
  });

  test('tools declare an accurate sideEffect, and what each boundary is told of it is what they declare', async () => {
    await works(
      `
      import { tools as checksum } from 'blade-tool-checksum';
      import { createJiraTools } from '@acme/blade-tool-jira';
      const input = { key: 'DOC-7', body: 'hi', file_path: '/x' };
      const names = ['Checksum', 'JiraGetIssue', 'JiraAddComment'];
      const session = await open([{ toolCalls: names.map((name) => ({ name, input })) }, 'done'], {
        tools: [...checksum, ...createJiraTools({ baseUrl: 'https://acme.invalid', token: 'secret' })],
        permissions: { deny: names },
        toolLifecycle: {
          onToolScheduled: async ({ toolName, sideEffect, interruptBehavior }) =>
            void say(toolName + ' ' + sideEffect + ' ' + interruptBehavior),
        },
      });
      await session.send('go');
      for await (const event of session.stream());
      await session.close();
      `,
      'Checksum pure block',
      'JiraGetIssue pure block',
      'JiraAddComment non_idempotent block',
    );
  });

  test('credentials come from the caller, and tools over a network work, report failures and refuse private addresses', async () => {
    await works(
      `
      import { createServer } from 'node:http';
      import { createJiraTools } from '@acme/blade-tool-jira';
      const asked = [];
      const server = createServer((request, response) => {
        asked.push([request.method, request.url, request.headers.authorization].join(' '));
        if (request.method === 'POST') response.statusCode = 503;
        if (request.url.endsWith('/DOC-8')) {
          response.writeHead(302, { location: 'http://127.0.0.1:1/' });
          return response.end();
        }
        response.end(JSON.stringify({ fields: { summary: 'Write it' }, id: '1' }));
      });
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      const baseUrl = 'http://127.0.0.1:' + server.address().port;
      const key = 'DOC-7';
      const call = (name, input) => ({ name, input });
      const list = [
        call('JiraGetIssue', { key }),
        call('JiraAddComment', { key, body: 'done' }),
        call('JiraGetIssue', { key: 'DOC-8' }),
        call('JiraGetIssue', { key: '../../admin' }),
      ];
      const turn = async (tools, toolCalls) => {
        const session = await open([{ toolCalls }, 'done'], { tools });
        await session.send('go');
        const results = new Map();
        for await (const event of session.stream()) {
          if (event.type === 'tool_use') results.set(event.id, undefined);
          if (event.type === 'tool_result') results.set(event.id, event);
        }
        await session.close();
        for (const { name, isError, output } of results.values()) {
          say(name + ' ' + (isError ? 'failed' : JSON.stringify(output)));
        }
      };
      await turn(createJiraTools({ baseUrl, token: 'of the caller', allowPrivateNetwork: true }), list);
      for (const line of asked.sort()) say(line);
      asked.length = 0;
      await turn(createJiraTools({ baseUrl: baseUrl.replace('http', 'https'), token: 't' }), [list[0]]);
      try {
        createJiraTools({ baseUrl: 'file:///etc', token: 't' });
      } catch (error) {
        say(error.message);
      }
      say(asked.length + ' more');
      server.close();
      `,
      'JiraGetIssue {"key":"DOC-7","summary":"Write it"}',
      'JiraAddComment failed',
      'JiraGetIssue failed',
      'JiraGetIssue failed',
      'GET /rest/api/2/issue/DOC-7 Bearer of the caller',
      'GET /rest/api/2/issue/DOC-8 Bearer of the caller',
      // Once: nothing retries what is not idempotent.
      'POST /rest/api/2/issue/DOC-7/comment Bearer of the caller',
      'JiraGetIssue failed',
      'the site must speak https, got file:',
      '0 more',
    );
  });

  test('tools release their connections after cancellation', async () => {
    await works(
      `
      import { createServer } from 'node:http';
      import { createJiraTools } from '@acme/blade-tool-jira';
      let arrived;
      const asked = new Promise((resolve) => (arrived = resolve));
      let left;
      const closed = new Promise((resolve) => (left = resolve));
      const server = createServer((request, response) => {
        response.on('close', () => left());
        arrived();
      });
      await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
      const baseUrl = 'http://127.0.0.1:' + server.address().port;
      const tools = createJiraTools({ baseUrl, token: 't', allowPrivateNetwork: true });
      const session = await open([{ toolCalls: [{ name: 'JiraGetIssue', input: { key: 'DOC-7' } }] }], { tools });
      await session.send('go');
      const reading = (async () => {
        for await (const event of session.stream());
      })();
      await asked;
      await session.abort();
      await closed;
      await reading;
      await session.close();
      say('closed');
      server.close();
      `,
      'closed',
    );
  });

  test('tools honor the filesystem capabilities of the ExecutionContext', async () => {
    await works(
      `
      import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
      import { tools } from 'blade-tool-checksum';
      const base = process.cwd() + '/files';
      mkdirSync(base + '/in', { recursive: true });
      writeFileSync(base + '/in/a', '');
      writeFileSync(base + '/secret', '');
      symlinkSync('../secret', base + '/in/link');
      const files = ['a', base + '/in/a', base + '/secret', '../secret', 'link'];
      const session = await open([{ toolCalls: files.map((file_path) => ({ name: 'Checksum', input: { file_path } })) }, 'x'], {
        tools,
        permissionMode: 'default',
        permissionHandler: async () => ({ behavior: 'allow' }),
        defaultContext: { capabilities: { filesystem: { roots: [base + '/in'], cwd: base + '/in' } } },
      });
      await session.send('go');
      const results = new Map();
      for await (const event of session.stream()) {
        if (event.type === 'tool_use') results.set(event.id, undefined);
        if (event.type === 'tool_result') results.set(event.id, event.output.sha256?.slice(0, 8) ?? 'failed');
      }
      await session.close();
      say([...results.values()].join());
      `,
      'e3b0c442,e3b0c442,failed,failed,failed',
    );
  });

  test('a README documents tool names, permissions, environment variables, side effects, and a minimal usage example', async () => {
    for (const [folder, name] of Object.entries(PACKAGES)) {
      const readme = read(source(folder), 'README.md');
      const { createJiraTools, tools } = await import(join(project, 'node_modules', ...name.split('/'), 'index.js'));
      for (const definition of tools ?? createJiraTools({ baseUrl: 'https://acme.example', token: 't' })) {
        const row = readme.split('\n').find((line) => line.startsWith(`| \`${definition.name}\` |`));
        assert.ok(row, `${name} documents ${definition.name}`);
        assert.ok(row.includes(`\`${definition.sideEffect}\``), row);
        const kind = { readonly: 'ReadOnly', write: 'Write', execute: 'Execute' }[definition.kind];
        assert.ok(row.includes(`\`${kind}\`: `), row);
      }
      assert.match(readme, /environment variables/);
      assert.match(readme, /```js\n.*createAgent.*```/s);
    }
  });
});
