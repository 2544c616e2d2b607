import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ApiClient } from '../platform/api-client.js';
import { learnedModel, putSamples } from './learned-documents.js';
import { missing, startCluster } from './running-cluster.js';
import type { Member } from './running-cluster.js';

const startMs = 180_000;
const testMs = 90_000;
const waitMs = 60_000;

async function eventually<Result>(what: string, ask: () => Promise<Result | undefined>): Promise<Result> {
  const beganMs = performance.now();
  for (;;) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() - beganMs > waitMs) throw new Error(`It did not happen: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

(missing.length === 0 ? describe : describe.skip)('a cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  /** Callers of each controller, and of all by turns. */
  let callers: ApiClient[];
  let anyone: ApiClient;

  beforeAll(async () => {
    cluster = await startCluster(2, 2);
    callers = cluster.controllers.map(({ url }) => new ApiClient(url, cluster.auth));
    anyone = new ApiClient(cluster.url, cluster.auth);
  }, startMs);
  afterAll(() => cluster.stop(), startMs);

  const caller = (at: number): ApiClient => callers[at] as ApiClient;
  const code = (text: string): string => `function main({ n }) { return { n, says: '${text}' }; }`;

  async function untilUp(count: number): Promise<void> {
    for (const { url } of cluster.controllers) {
      await eventually(`${url} counts ${count} invokers`, async () => {
        const healthy = await (await fetch(`${url}/invokers/healthy/count`)).json();
        return healthy === count ? healthy : undefined;
      });
    }
  }

  async function kill(member: Member): Promise<void> {
    const { pid } = member;
    process.kill(pid, 'SIGKILL');
    await eventually(`${member.name} has been started again`, () =>
      Promise.resolve(member.pid === pid ? undefined : true),
    );
  }

  /** Submits activations one after the other until `until` resolves, and gives the ids of those that were accepted. */
  async function submitUntil(until: Promise<unknown>): Promise<string[]> {
    const accepted: string[] = [];
    let isOver = false;
    void until.finally(() => (isOver = true)).catch(() => undefined);
    while (!isOver) {
      const answer = await anyone
        .request<{ activationId: string }>('POST', '_/actions/load', { n: 1 })
        .catch(() => undefined);
      if (answer?.status === 202) accepted.push(answer.body.activationId);
    }
    await until;
    return accepted;
  }

  test(
    'an action is created through one controller, runs through the other, and both list it',
    async () => {
      await caller(0).putAction('hello', code('first'));
      const answer = await caller(1).invoke('hello', { n: 7 });
      expect(answer.status).toBe(200);
      expect(answer.body.response.result).toEqual({ n: 7, says: 'first' });
      for (const each of callers) {
        expect((await each.record(answer.activationId)).name).toBe('hello');
        await eventually('the list has it', async () => {
          const { body } = await each.request<{ activationId: string }[]>('GET', '_/activations');
          return body.find(({ activationId }) => activationId === answer.activationId);
        });
      }
    },
    testMs,
  );

  test(
    'what one controller changes the other soon sees',
    async () => {
      expect((await caller(1).invokeForResult('hello')).body.says).toBe('first');
      await caller(0).putAction('hello', code('second'));
      await eventually('the other controller runs the new code', async () =>
        (await caller(1).invokeForResult('hello')).body.says === 'second' ? true : undefined,
      );
      await caller(0).request('DELETE', '_/actions/hello');
      await eventually('the other controller has forgotten it', async () =>
        (await caller(1).invokeForResult('hello')).status === 404 ? true : undefined,
      );
    },
    testMs,
  );

  test(
    'an invoker is killed under load: what was accepted ends, and it comes back under its number',
    async () => {
      await caller(0).putAction('load', code('load'));
      expect((await anyone.invoke('load')).status).toBe(200);
      const [victim] = cluster.invokers;
      if (victim === undefined) throw new Error('no invoker');
      const before = await (await fetch(`${caller(0).url}/invokers`)).json();
      const accepted = await submitUntil(new Promise((resolve) => setTimeout(resolve, 500)).then(() => kill(victim)));
      expect(accepted.length).toBeGreaterThan(0);
      for (const id of accepted) await anyone.record(id, waitMs);
      await untilUp(2);
      expect(await (await fetch(`${caller(0).url}/invokers`)).json()).toEqual(before);
    },
    testMs,
  );

  test(
    'a controller is killed under load: the other goes on, and what was accepted ends',
    async () => {
      const [victim] = cluster.controllers;
      if (victim === undefined) throw new Error('no controller');
      const accepted = await submitUntil(new Promise((resolve) => setTimeout(resolve, 500)).then(() => kill(victim)));
      expect((await caller(1).invoke('load')).status).toBe(200);
      for (const id of accepted) await caller(1).record(id, waitMs);
      await untilUp(2);
      expect((await caller(0).invoke('load')).status).toBe(200);
    },
    testMs,
  );

  test(
    'one controller decides about GPUs for all; when it is killed the other does',
    async () => {
      const need = { annotations: { gpu: { memoryMiB: 1024 } } };
      await eventually('the action is there', () => caller(0).putAction('onGpu', code('gpu'), need));
      const answers = (at: number): Promise<unknown> =>
        eventually(`controller ${at} has it run on a GPU`, async () => {
          const { status, body } = await caller(at).invoke('onGpu', { n: at });
          return status === 200 ? body : undefined;
        });
      for (const [at] of callers.entries()) await answers(at);
      await putSamples(cluster.couchdb.url);
      for (const [at, victim] of cluster.controllers.entries()) {
        const killed = kill(victim);
        await answers(1 - at);
        await killed;
        await answers(at);
      }
      // Whichever came to decide took up what was measured and had a predictor learned, by a job.
      await eventually('a predictor is learned', () => learnedModel(cluster.couchdb.url));
    },
    testMs,
  );
});
