// The official SDK clients, version 1 and 2, in each way they can speak to the server: a real tool
// call each, over the transport that is named.
//
//   node era.mjs SERVER WORKSPACE URL
//
// WORKSPACE holds a.txt ("alpha\n"); URL is a server that runs on the same one. One line a step.
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Client as ClientV2, StreamableHTTPClientTransport as HttpV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import assert from 'node:assert/strict';

const [server, workspace, url] = process.argv.slice(2);
const INFO = { name: 'codespace-era-test', version: '1' };
const MODERN = '2026-07-28';
const program = {
  command: server, args: ['--workspace', `ws=${workspace}`], env: process.env, stderr: 'inherit',
};

const ways = {
  'SDK 1 over stdio': () => [new ClientV1(INFO), new StdioV1(program)],
  'SDK 1 over HTTP': () => [new ClientV1(INFO), new HttpV1(new URL(url))],
  'SDK 2, legacy, over stdio': () => [new ClientV2(INFO), new StdioV2(program)],
  'SDK 2, legacy, over HTTP': () => [new ClientV2(INFO), new HttpV2(new URL(url))],
  'SDK 2, its choice, over stdio': () =>
    [new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } }), new StdioV2(program)],
  'SDK 2, its choice, over HTTP': () =>
    [new ClientV2(INFO, { versionNegotiation: { mode: 'auto' } }), new HttpV2(new URL(url))],
  'SDK 2, modern, over stdio': () =>
    [new ClientV2(INFO, { versionNegotiation: { mode: { pin: MODERN } } }), new StdioV2(program)],
  'SDK 2, modern, over HTTP': () =>
    [new ClientV2(INFO, { versionNegotiation: { mode: { pin: MODERN } } }), new HttpV2(new URL(url))],
};

async function call(client, name, args, options) {
  const params = { name, arguments: args };
  const result = client instanceof ClientV1
    ? await client.callTool(params, undefined, options)
    : await client.callTool(params, options);
  assert.ok(!result.isError, `${name}: ${result.content[0].text}`);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return result.structuredContent;
}

async function work([client, transport]) {
  await client.connect(transport);
  assert.equal(client.getServerVersion()?.name, 'codespace');
  const { tools } = await client.listTools();
  assert.ok(tools.some((t) => t.name === 'exec_command'));
  const page = await call(client, 'read', { workspace_id: 'ws', path: 'a.txt' });
  assert.equal(page.content, 'alpha\n');
  const seen = [];
  const done = await call(
    client, 'exec_command',
    { workspace_id: 'ws', command: ['sh', '-c', 'sleep 5.5; cat a.txt'], wait_ms: 30000 },
    { timeout: 60_000, onprogress: (p) => seen.push(p.progress) });
  assert.equal(done.exit_code, 0);
  assert.equal(done.output, 'alpha\n');
  assert.ok(seen.length >= 1, 'progress was told while the command ran');
  const refused = await client.callTool({ name: 'read', arguments: { workspace_id: 'ws', path: 'none' } });
  assert.ok(refused.isError);
  await client.close();
}

const names = Object.keys(ways);
console.log(`1..${names.length}`);
const results = await Promise.allSettled(names.map((name) => work(ways[name]())));
let failed = 0;
results.forEach((result, i) => {
  if (result.status === 'rejected') {
    failed += 1;
    for (const line of String(result.reason?.stack ?? result.reason).split('\n')) console.log(`# ${line}`);
  }
  console.log(`${result.status === 'rejected' ? 'not ok' : 'ok'} ${i + 1} - ${names[i]}`);
});
console.log(`codespace-tests: ${names.length - failed} passed, ${failed} failed, 0 skipped`);
process.exit(failed ? 1 : 0);
