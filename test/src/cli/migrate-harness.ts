import { expect } from '@jest/globals';
import { createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { alice } from '../api/harness.js';
import type { Account, Api } from '../api/harness.js';
import { runBinary } from './wsk-process.js';
import type { WskResult } from './wsk-process.js';

const binary = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));

/** `uuid:key`. */
export const keyOf = ({ uuid, key }: Account): string => `${uuid}:${key}`;

/** Runs `gpuwhisk migrate`. */
export function migrateIn(
  folder: string,
  args: readonly string[],
  environment: Record<string, string> = {},
): Promise<WskResult> {
  return runBinary(binary, ['migrate', ...args], { directory: folder, environment });
}

/** Creates an entity in the caller's namespace. */
export async function put(api: Api, path: string, body: unknown, as = alice): Promise<void> {
  const reply = await api.request('PUT', `/api/v1/namespaces/_/${path}`, { body, as });
  expect([path, reply.status, reply.status === 200 ? '' : reply.text]).toEqual([path, 200, '']);
}

/** Encrypts a parameter of `actions/plain` on a filled server, as a server with a key stores it. */
export async function encryptParameter({ store }: Api): Promise<void> {
  const { parameters, ...document } = await store.get('whisks', 'alice/plain');
  const secret = { key: 'secret', value: 'QUJD', encryption: 'aes-128' };
  await store.put('whisks', { ...document, parameters: [secret, ...(parameters as JsonValue[])] });
}

/** Reads an entity of the caller's namespace. */
export async function get(api: Api, path: string, as = alice): Promise<JsonObject> {
  const reply = await api.request('GET', `/api/v1/namespaces/_/${path}`, { as });
  expect([path, reply.status]).toEqual([path, 200]);
  return reply.json as JsonObject;
}

/** The documents of a platform, without the times of their updates and the locations of code. */
export async function documents(api: Api): Promise<Map<string, JsonObject>> {
  const all = await api.store.list('whisks', { limit: 1000 });
  return new Map(
    all.map((document) => {
      const { updated, _rev: revision, ...rest } = document;
      expect([typeof updated, typeof revision]).toEqual(['number', 'string']);
      const exec = rest.exec as JsonObject | undefined;
      const code = exec?.code as JsonObject | undefined;
      if (exec !== undefined && typeof code === 'object') rest.exec = { ...exec, code: code.digest ?? null };
      return [document._id, rest];
    }),
  );
}

/** Code that is large enough to be stored as an attachment. */
export const large = `function main() { return { text: '${'x'.repeat(40_000)}' }; }`;

/** Creates entities of all types in alice's namespace. */
export async function fill(api: Api): Promise<void> {
  await put(api, 'packages/tools', {
    publish: true,
    version: '1.2.3',
    parameters: [
      { key: 'region', value: 'eu' },
      { key: 'size', value: 1 },
    ],
    annotations: [{ key: 'description', value: 'tools' }],
  });
  await put(api, 'packages/bound', {
    binding: { namespace: '_', name: 'tools' },
    parameters: [{ key: 'size', value: 2 }],
  });
  await put(api, 'actions/plain', {
    exec: { kind: 'nodejs:20', code: large, main: 'main' },
    limits: { memory: 128, timeout: 1234, logs: 1 },
    parameters: [{ key: 'mode', value: { deep: [1, null] }, init: true }],
    annotations: [
      { key: 'web-export', value: true },
      { key: 'provide-api-key', value: true },
    ],
    version: '2.0.7',
    publish: true,
  });
  await put(api, 'actions/tools/packed', {
    exec: { kind: 'python:3.11', code: Buffer.from('PK zip').toString('base64') },
    parameters: [{ key: 'size', value: 3 }],
  });
  await put(api, 'actions/image', { exec: { kind: 'blackbox', image: 'openwhisk/dockerskeleton' } });
  // A list starts with the last entity written, so neither list order nor name order is the order of dependencies.
  await put(api, 'actions/inner', { exec: { kind: 'sequence', components: ['/_/plain', '/_/tools/packed'] } });
  await put(api, 'actions/tools/through', { exec: { kind: 'sequence', components: ['/_/inner'] } });
  await put(api, 'actions/outer', { exec: { kind: 'sequence', components: ['/_/inner', '/_/bound/through'] } });
  await put(api, 'triggers/tick', {
    parameters: [{ key: 'every', value: 'minute' }],
    annotations: [{ key: 'feed', value: '/alice/tools/packed' }],
  });
  await put(api, 'triggers/name%20with%20blanks', {});
  await put(api, 'rules/on', { trigger: '/_/tick', action: '/_/tools/packed' });
  await put(api, 'rules/off', { trigger: '/_/tick', action: '/_/outer' });
  await api.request('POST', '/api/v1/namespaces/_/rules/off', { body: { status: 'inactive' } });
}

/**
 * A proxy that fails many requests: with 503, with a broken connection, or by dropping the answer of a request that was
 * done.
 */
export async function startFlakyProxy(
  port: number,
): Promise<{ url: string; troubles(): number; close(): Promise<void> }> {
  const seen = new Set<string>();
  let troubles = 0;
  const server = createServer((incoming, response) => {
    // The first attempt of every second request fails, its retry does not.
    const key = `${incoming.method} ${incoming.url}`;
    const isTroubled = !seen.has(key) && seen.add(key).size % 2 === 0;
    const trouble = isTroubled ? (['busy', 'broken', 'lost'] as const)[troubles++ % 3] : undefined;
    if (trouble === 'broken') return void incoming.socket.destroy();
    if (trouble === 'busy') return void response.writeHead(503).end('busy');
    const { method, url, headers } = incoming;
    const outgoing = httpRequest({ host: '127.0.0.1', port, method, path: url, headers, agent: false }, (answer) => {
      if (trouble === 'lost') {
        answer.resume().on('end', () => incoming.socket.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    outgoing.on('error', () => incoming.socket.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    troubles: () => troubles,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
