// Calls one tool through the official SDK client (version 1) and writes how long each call took.
//
//   node sdk_load.mjs MODULES SAMPLES CALLS PARAMS http URL
//   node sdk_load.mjs MODULES SAMPLES CALLS PARAMS stdio PROGRAM [ARGUMENT...]
//
// SAMPLES gets 64-bit nanoseconds, as from the programs of this folder.
import { writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [modules, samples, calls, params, how, target, ...rest] = process.argv.slice(2);
const sdk = (name) =>
  import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/client/${name}.js`));
const { Client } = await sdk('index');

async function transport() {
  if (how === 'http') {
    const { StreamableHTTPClientTransport } = await sdk('streamableHttp');
    return new StreamableHTTPClientTransport(new URL(target));
  }
  const { StdioClientTransport } = await sdk('stdio');
  return new StdioClientTransport({ command: target, args: rest, env: process.env, stderr: 'ignore' });
}

const CallResult = { parse: (r) => r, safeParse: (data) => ({ success: true, data }) };
const client = new Client({ name: 'bench', version: '1' });
await client.connect(await transport());
const request = { method: 'tools/call', params: JSON.parse(params) };
const warm = Math.max(20, calls / 10);
const ns = new BigUint64Array(+calls);
for (let i = -warm; i < calls; i++) {
  const start = process.hrtime.bigint();
  await client.request(request, CallResult);
  if (i >= 0) ns[i] = process.hrtime.bigint() - start;
}
await client.close();
writeFileSync(samples, Buffer.from(ns.buffer));
process.exit(0);
