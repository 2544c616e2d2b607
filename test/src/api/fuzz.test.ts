// Bad requests, zips, manifests and documents from a seed: no unexpected 5xx, no crash, no hang. A million of them:
//   FUZZ_REQUESTS=1000000 FUZZ_SEED=7 npm test -- api/fuzz
import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ConfigError } from '@gpuwhisk/common/config';
import { parseManifest } from '@gpuwhisk/common/runtimes';
import type { JsonValue } from '@gpuwhisk/common/json';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { putIdentity } from '@gpuwhisk/controller/authentication/authentication';
import type { InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { badBytes, badRequest } from '../fuzz/bad-requests.js';
import type { BadRequest } from '../fuzz/bad-requests.js';
import { spoiled, spoiledText } from '../fuzz/bad-values.js';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, bob, hello, manifest, operator, startApi } from './harness.js';
import type { Api } from './harness.js';

const { FUZZ_REQUESTS, FUZZ_SEED = '1', TEST_ALL } = process.env;
const requests = Number(FUZZ_REQUESTS ?? (TEST_ALL === '1' ? 20_000 : 3000));
const seed = Number(FUZZ_SEED);
const atOnce = 8;
/** Requests after which entities that bad requests damaged are restored. */
const roundLength = 250;
/** Limit for one answer. A few milliseconds are usual; a busy machine takes longer. */
const answerMs = 30_000;
const testMs = 60_000 + requests * 10;

/**
 * Answers of 5xx that are no fault: OpenWhisk's for a document that cannot be read, OpenWhisk's with the record of a
 * failed run, and ours while a GPU's row has expired.
 */
const allowed = [
  /^500 .*Resource is corrupted and cannot be read\./,
  /^502 .*"activationId":/,
  /^503 .*needs a GPU, and no invoker has one\./,
];

let api: Api;
const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
const crashes: unknown[] = [];
const crashed = (error: unknown): void => void crashes.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', crashed);
  process.on('uncaughtException', crashed);
  api = await startApi({ limits: { maxCodeBytes: 100_000, maxParametersBytes: 50_000, maxPayloadBytes: 50_000 } });
  api.onInvoke(({ action, identity, blocking }: InvokeRequest) => {
    const activationId = 'a'.repeat(32);
    if (!blocking) return { type: 'accepted', activationId };
    const response = { statusCode: 0 as const, result: { done: true } };
    const { name, version } = action;
    const times = { start: 1, end: 2, duration: 1 };
    const activation = { namespace: identity.namespace.name, name, version, subject: identity.subject, activationId };
    return {
      type: 'completed',
      activation: { ...activation, ...times, response, logs: [], publish: false, annotations: [] },
    };
  });
});
afterAll(async () => {
  agent.destroy();
  await api.close();
  process.off('unhandledRejection', crashed);
  process.off('uncaughtException', crashed);
});

/** Ignores a missing document: a request whose client has disconnected may still run and remove the same document. */
function refuseLost(error: unknown): void {
  if (!(error instanceof NoDocumentError)) throw error;
}

/** Restores accounts, entities and the GPU as they were before the first request. */
async function restore(): Promise<void> {
  const { store, state, controller } = api;
  for (const { subject, namespace } of [alice, bob, operator]) {
    for (const id of [subject, `${namespace}/limits`]) {
      const { _rev: revision } = await store.get('subjects', id).catch(() => ({ _rev: undefined }));
      if (typeof revision === 'string') await store.delete('subjects', id, revision).catch(refuseLost);
    }
  }
  for (const account of [alice, bob, operator]) await putIdentity(store, account);
  controller.identities.forget();
  await setNode(state, nodeRow([a100('GPU-0')]));
  for (const [path, body] of [
    ['actions/act', { ...hello, annotations: [{ key: 'web-export', value: true }] }],
    ['packages/pkg', { publish: true }],
    ['actions/pkg/act', hello],
    ['packages/bound', { binding: { namespace: 'alice', name: 'pkg' } }],
    ['actions/seq', { exec: { kind: 'sequence', components: ['/_/act', '/_/pkg/act'] } }],
    ['triggers/happened', {}],
    ['rules/when', { trigger: '/_/happened', action: '/_/act' }],
  ] as const) {
    // A PUT does not replace a document that cannot be read. Such a document stays, as another target of bad requests.
    await api.request('PUT', `/api/v1/namespaces/_/${path}?overwrite=true`, { body });
  }
  api.invocations.length = 0;
  api.logLines.length = 0;
}

interface Answer {
  status: number;
  text: string;
}

function answerTo({ method, path, headers, body }: BadRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { port: api.port, host: '127.0.0.1', method, path, headers, agent };
    const outgoing = httpRequest(options, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') });
      });
    });
    outgoing.setTimeout(answerMs, () => outgoing.destroy(new Error(`no answer within ${answerMs} ms`)));
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** Undefined if the answer to a request is allowed, otherwise a text that says why not. */
async function problemOf(request: BadRequest): Promise<string | undefined> {
  try {
    const { status, text } = await answerTo(request);
    if (status < 500 && status >= 200) return undefined;
    // The error text is in the body, and an answer to HEAD has no body: repeat the request as GET.
    if (request.method === 'HEAD') return await problemOf({ ...request, method: 'GET' });
    const answer = `${status} ${text.slice(0, 300)}`;
    return allowed.some((one) => one.test(answer)) ? undefined : `was answered ${answer}`;
  } catch (error) {
    // Node's client refuses to send such a request.
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ERR_INVALID_CHAR' || code === 'ERR_UNESCAPED_CHARACTERS') return undefined;
    // A server may close a connection whose request it does not read.
    if (code === 'EPIPE' || code === 'ECONNRESET') return undefined;
    return `got ${String(error)}`;
  }
}

/** Sends bytes that are not HTTP; rejects if the server neither answers nor closes the connection. */
function sendBytes(bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(api.port, '127.0.0.1', () => socket.end(bytes));
    socket.setTimeout(answerMs, () => socket.destroy(new Error('the server neither answers nor closes')));
    socket.setEncoding('latin1').on('data', (part: string) => (text += part));
    socket.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ECONNRESET' || error.code === 'EPIPE' ? resolve(text) : reject(error),
    );
    socket.on('close', () => resolve(text));
  });
}

test(
  `${requests} bad requests from seed ${seed} get no 5xx, and each an answer`,
  async () => {
    const { routes } = api.controller;
    let next = 0;
    const problems: string[] = [];
    const work = async (end: number): Promise<void> => {
      while (next < end && problems.length < 5) {
        const number = next++;
        const random = seededRandom(seed * 1_000_003 + number);
        if (number % 100 === 99) {
          const bytes = badBytes(random);
          const text = await sendBytes(bytes);
          if (/^HTTP\/1.1 5/.test(text)) problems.push(`${number}: ${bytes.toString('latin1').slice(0, 200)}: ${text}`);
          continue;
        }
        const request = badRequest(random, routes);
        const problem = await problemOf(request);
        if (problem === undefined) continue;
        const { method, path, headers, body } = request;
        const shown = `${method} ${path.slice(0, 200)} ${JSON.stringify(headers)} ${body?.toString('latin1').slice(0, 2000) ?? ''}`;
        problems.push(`request ${number} of seed ${seed} ${problem}\n  ${shown}`);
      }
    };
    while (next < requests && problems.length === 0) {
      await restore();
      const end = Math.min(requests, next + roundLength);
      await Promise.all(Array.from({ length: atOnce }, () => work(end)));
    }
    expect([problems, crashes]).toEqual([[], []]);
    await restore();
    const { status, text } = await api.request('GET', '/api/v1/namespaces');
    expect([status, text]).toEqual([200, '["alice"]']);
  },
  testMs,
);

test(`manifests of runtimes are read or refused`, () => {
  const random = seededRandom(seed);
  const outcomes = { read: 0, refused: 0 };
  for (let number = 0; number < Math.min(requests, 20_000) / 4; number++) {
    const text = spoiledText(random, spoiled(random, manifest as unknown as JsonValue, 0.01)).toString('utf8');
    try {
      parseManifest(text, 'a file');
      outcomes.read++;
    } catch (error) {
      if (!(error instanceof ConfigError))
        throw new Error(`manifest ${number} of seed ${seed}: ${text}`, { cause: error });
      outcomes.refused++;
    }
  }
  expect(Math.min(outcomes.read, outcomes.refused)).toBeGreaterThan(10);
});
