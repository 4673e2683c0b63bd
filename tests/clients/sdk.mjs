// The official MCP SDK client does a small job on a clone of this repository, as an agent would:
// find, read, patch a test so that it fails, run it in the sandbox, patch the program, run it again
// to green; then the clone's own unit tests where the platform has meson.
//
//   node sdk.mjs SERVER CLONE
//
// One line a step. The SDK checks every answer against the tool's output schema by itself.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [server, clone] = process.argv.slice(2);
const SAMPLE = 'tests/clients/sample';
const LONG = { timeout: 540_000 };
const COMMAND_MS = 500_000;

const transport = new StdioClientTransport({
  command: server,
  args: ['--workspace', `repo=${clone}`],
  env: process.env,
  stderr: 'inherit',
});
const client = new Client({ name: 'codespace-sdk-test', version: '1' });
const stray = [];
client.onerror = (error) => stray.push(String(error));

async function call(name, args, options) {
  const result = await client.callTool(
    { name, arguments: { workspace_id: 'repo', ...args } }, undefined, options);
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

const patch = (...lines) => ['*** Begin Patch', ...lines, '*** End Patch', ''].join('\n');

async function run(command, more = {}) {
  return call('exec_command',
    { command, wait_ms: COMMAND_MS, timeout_ms: COMMAND_MS, ...more }, LONG);
}

async function everything(done) {
  let { output, cursor, eof, process_id } = done;
  while (!eof) {
    const page = await call('read_process', { workspace_id: undefined, process_id, cursor, wait_ms: 1000 });
    output += page.chunk;
    ({ cursor, eof } = page);
  }
  return output;
}

async function mustSucceed(command, more) {
  const done = await run(command, more);
  const output = await everything(done);
  assert.equal(done.exit_code, 0, `${command.join(' ')}: ${JSON.stringify(done)}\n${output}`);
  assert.equal(done.sandbox, 'linux-sandbox');
  return output;
}

const steps = {
  'connects and learns what the server is': async () => {
    await client.connect(transport);
    assert.equal(client.getServerVersion().name, 'codespace');
    assert.ok(client.getInstructions().length > 40);
  },
  'lists the tools': async () => {
    const { tools } = await client.listTools();
    for (const name of ['read', 'find', 'apply_patch', 'exec_command'])
      assert.ok(tools.some((t) => t.name === name && t.outputSchema), name);
  },
  'is told that commands are sandboxed': async () => {
    const { execution } = await call('workspace_info', {});
    assert.equal(execution.isolation.command_sandbox, 'linux-sandbox');
    assert.equal(execution.network.enforcement, 'enforced');
  },
  'finds the sources': async () => {
    const { paths, truncated } = await call('find', { glob: '*.c' });
    assert.ok(paths.includes('src/base/buf.c'));
    assert.ok(paths.includes(`${SAMPLE}/count.c`));
    assert.equal(truncated, false);
  },
  'reads a file': async () => {
    const page = await call('read', { path: `${SAMPLE}/count.c` });
    assert.equal(page.content, readFileSync(join(clone, SAMPLE, 'count.c'), 'utf8'));
    assert.match(page.version, /^sha256:[0-9a-f]{64}$/);
  },
  'runs the test suite of the sample': async () => {
    const output = await mustSucceed(['make', 'check'], { cwd: SAMPLE });
    assert.match(output, /^0 failed$/m);
  },
  'adds a test that fails': async () => {
    const result = await call('apply_patch', {
      patch: patch(
        `*** Update File: ${SAMPLE}/test_count.c`, '@@ int main(void)',
        '     check("three words", count_words("one two  three"), 3);',
        '+    check("no words", count_words("   "), 0);'),
    });
    assert.equal(result.status, 'applied');
    const done = await run(['make', 'check'], { cwd: SAMPLE });
    assert.equal(done.exit_code, 2);
    assert.match(await everything(done), /^FAIL: no words/m);
  },
  'fixes the program to green': async () => {
    const { version } = await call('read', { path: `${SAMPLE}/count.c` });
    const result = await call('apply_patch', {
      expected_versions: { [`${SAMPLE}/count.c`]: version },
      patch: patch(
        `*** Update File: ${SAMPLE}/count.c`, '@@ size_t count_words(const char *text)', ' {',
        '     size_t words = 0;',
        '-    for (; *text; text++)',
        "-        if (*text == ' ' && text[1] && text[1] != ' ')",
        '-            words++;',
        '-    return words + 1;',
        '+    for (; *text; text++)',
        "+        if (*text != ' ' && (text[1] == ' ' || !text[1]))",
        '+            words++;',
        '+    return words;',
        ' }'),
    });
    assert.equal(result.status, 'applied');
    const output = await mustSucceed(['make', 'check'], { cwd: SAMPLE });
    assert.match(output, /^pass: no words/m);
    assert.match(output, /^0 failed$/m);
  },
  'gets tool errors as results': async () => {
    const result = await client.callTool(
      { name: 'read', arguments: { workspace_id: 'repo', path: '../x' } });
    assert.equal(result.isError, true);
    assert.equal(JSON.parse(result.content[0].text).code, 'PATH_ESCAPE');
  },
  'cancels a running command': async () => {
    const gone = new AbortController();
    const waiting = client.callTool(
      { name: 'exec_command', arguments: { workspace_id: 'repo', command: ['sleep', '86400'], wait_ms: 600_000 } },
      undefined, { signal: gone.signal, timeout: 600_000 });
    await client.ping();
    gone.abort('no longer needed');
    await assert.rejects(waiting);
    await client.ping();
  },
  'builds and tests this repository in the sandbox': async () => {
    if (!existsSync('/usr/bin/meson'))
      return 'meson is not installed where a sandboxed command can see it';
    await mustSucceed(['/usr/bin/meson', 'setup', 'build-client']);
    const output = await mustSucceed(
      ['/usr/bin/meson', 'test', '-C', 'build-client', 'base/buf', 'base/str', 'base/utf8']);
    assert.match(output, /^Ok:\s+3\s*$/m);
    assert.match(output, /^Fail:\s+0\s*$/m);
    return undefined;
  },
  'closes without a stray error': async () => {
    await client.close();
    assert.deepEqual(stray, []);
  },
};

console.log(`1..${Object.keys(steps).length}`);
let number = 0, passed = 0, failed = 0, skipped = 0;
for (const [name, step] of Object.entries(steps)) {
  number++;
  try {
    const skip = await step();
    console.log(`ok ${number} - ${name}${skip ? ` # SKIP ${skip}` : ''}`);
    skip ? skipped++ : passed++;
  } catch (error) {
    failed++;
    console.log(String(error.stack ?? error).replace(/^/gm, '# '));
    console.log(`not ok ${number} - ${name}`);
  }
}
console.log(`codespace-tests: ${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed ? 1 : 0);
