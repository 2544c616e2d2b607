import { readdir, readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { eventsTopic } from '@gpuwhisk/common/user-events';
import { openRedisState } from '@gpuwhisk/engines/redis/redis-state';
import { KafkaBus } from '@gpuwhisk/engines/kafka/kafka-bus';
import { annotation, ApiClient } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { networkLack } from '../support/machine.js';
import { startTraceCollector } from '../support/trace-collector.js';
import type { TraceCollector } from '../support/trace-collector.js';
import { learnedModel, putSamples } from './learned-documents.js';
import { machineKinds } from './machine-kinds.js';
import { eventually, missing, startCluster } from './running-cluster.js';
import type { Member } from './running-cluster.js';

const startMs = 180_000;
const testMs = 90_000;
const waitMs = 60_000;
/** Callers of each action in the storm. */
const callersEach = 4;

/** Machines of an emulated cloud: none until a test rents some, and revoked by the test alone. */
const renting = {
  policy: { base: 'faashare', procure: 'protean' },
  procure: {
    ...{ provider: 'emulated', pollMs: 300 },
    emulated: {
      revocation: 0,
      set: {
        ...{ containers: 'process', stemCells: false, poolMemoryMiB: 1024, gpus: 'sim:a100-40' },
        ...{ prepareRuntimes: false, fetchRuntimes: false, allowWeakIsolation: true },
      },
    },
  },
};

(missing.length === 0 ? describe : describe.skip)('a cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let collector: TraceCollector;
  /** Clients of each controller; `anyone` calls all controllers in rotation. */
  let callers: ApiClient[];
  let anyone: ApiClient;

  beforeAll(async () => {
    collector = await startTraceCollector();
    const tracing = `tracing=${JSON.stringify({ url: collector.url, sampleRatio: 0 })}`;
    cluster = await startCluster(2, 2, { set: [`gpu=${JSON.stringify(renting)}`, 'operators=["guest"]', tracing] });
    callers = cluster.controllers.map(({ url }) => new ApiClient(url, cluster.auth));
    anyone = new ApiClient(cluster.url, cluster.auth);
  }, startMs);
  afterAll(async () => {
    await cluster.stop();
    await collector.close();
  }, startMs);

  test('its manifest lists what its invokers have, which are machines without the languages of the list', async () => {
    const here = await machineKinds();
    for (const { url } of cluster.controllers) {
      const { runtimes } = (await (await fetch(url)).json()) as { runtimes: Record<string, { kind: string }[]> };
      const told = Object.values(runtimes).flatMap((entries) => entries.map(({ kind }) => kind));
      expect(told).toEqual(here);
    }
  });

  const caller = (at: number): ApiClient => callers[at] as ApiClient;
  const code = (text: string): string => `function main({ n }) { return { n, says: '${text}' }; }`;

  async function operator(method: string, path: string, body?: JsonObject): Promise<unknown> {
    const headers = {
      authorization: `Basic ${Buffer.from(cluster.operatorAuth).toString('base64')}`,
      'content-type': 'application/json',
    };
    const text = body && JSON.stringify(body);
    const answer = await fetch(`${cluster.url}/api/v1/${path}`, { method, headers, ...(text && { body: text }) });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

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

  /**
   * Submits activations one after the other until `until` settles, `onAccepted` after each that is accepted; returns
   * their ids.
   */
  async function submitUntil(
    until: Promise<unknown>,
    action = 'load',
    onAccepted?: (id: string) => Promise<unknown>,
  ): Promise<string[]> {
    const accepted: string[] = [];
    let isOver = false;
    void until.finally(() => (isOver = true)).catch(() => undefined);
    while (!isOver) {
      const answer = await anyone
        .request<{ activationId: string }>('POST', `_/actions/${action}`, { n: 1 })
        .catch(() => undefined);
      if (answer?.status !== 202) continue;
      accepted.push(answer.body.activationId);
      await onAccepted?.(answer.body.activationId);
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
    'the log of a running action is followed through either controller',
    async () => {
      const talk = `async function main() {
        console.log('begun');
        await new Promise((resolve) => setTimeout(resolve, 3000));
        console.log('done');
        return {};
      }`;
      await caller(0).putAction('talk', talk);
      const activationId = await caller(0).submit('talk');
      const follow = async ({ url, auth }: ApiClient): Promise<[text: string, ms: number][]> => {
        const answer = await fetch(`${url}/api/v1/namespaces/_/activations/${activationId}/logs?follow=true`, {
          headers: { authorization: `Basic ${Buffer.from(auth).toString('base64')}` },
        });
        const seen: [string, number][] = [];
        for await (const chunk of answer.body!.pipeThrough(new TextDecoderStream())) {
          for (const [text] of chunk.matchAll(/begun|done|event: end/g)) seen.push([text, performance.now()]);
        }
        return seen;
      };
      for (const seen of await Promise.all(callers.map(follow))) {
        expect(seen.map(([text]) => text)).toEqual(['begun', 'done', 'event: end']);
        const [[, begunMs = 0] = [], [, doneMs = 0] = []] = seen;
        expect(doneMs - begunMs).toBeGreaterThan(1500);
      }
    },
    testMs,
  );

  test(
    "a caller's trace goes through controller, bus, leader and invoker, each of which exports its part",
    async () => {
      const gpu = { memoryMiB: 1000, mpsPercent: 50 };
      const tells = 'function main() { return { traceparent: process.env.__OW_TRACEPARENT }; }';
      await caller(0).putAction('tells', tells, { annotations: { gpu } });
      for (const [at, { url }] of cluster.controllers.entries()) {
        const traceId = `4bf92f3577b34da6a3ce929d0e0e473${at}`;
        const answer = await fetch(`${url}/api/v1/namespaces/_/actions/tells?blocking=true&result=true`, {
          method: 'POST',
          headers: {
            authorization: `Basic ${Buffer.from(cluster.auth).toString('base64')}`,
            traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
          },
        });
        const { traceparent } = (await answer.json()) as JsonObject;
        const spans = await collector.trace(traceId, ['invoke', 'gpu decision', 'activation']);
        const byName = new Map(spans.map((span) => [span.name, span]));
        expect(traceparent).toBe(`00-${traceId}-${byName.get('run')?.spanId}-01`);
        for (const name of ['gpu decision', 'bus', 'activation'])
          expect(byName.get(name)?.parentSpanId).toBe(byName.get('invoke')?.spanId);
        expect(byName.get('invoke')?.resource['service.instance.id']).toMatch(/^controller\d$/);
        expect(byName.get('gpu decision')?.resource['service.instance.id']).toMatch(/^controller\d$/);
        expect(byName.get('activation')?.resource['service.instance.id']).toMatch(/^invoker\d$/);
      }
      await caller(0).request('DELETE', '_/actions/tells');
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

  (networkLack === undefined ? test : test.skip)(
    'a function reaches the API through its invoker',
    async () => {
      const asking = `async function main() {
        const { __OW_API_HOST: host, __OW_API_KEY: key } = process.env;
        const authorization = 'Basic ' + Buffer.from(key).toString('base64');
        const { status: metrics } = await fetch(host + '/metrics');
        return {
          namespaces: await (await fetch(host + '/api/v1/namespaces', { headers: { authorization } })).json(),
          operators: (await fetch(host + '/api/v1/admin/prewarmers', { headers: { authorization } })).status,
          metrics,
        };
      }`;
      await caller(0).putAction('asking', asking, { annotations: { 'provide-api-key': true } });
      for (const each of callers) {
        // Operators' routes are closed to functions.
        const body = { namespaces: ['guest'], operators: 404, metrics: 404 };
        expect(await each.invokeForResult('asking')).toMatchObject({ status: 200, body });
      }
    },
    testMs,
  );

  test(
    'every process tells that it is there, and shows its metrics to Prometheus',
    async () => {
      await caller(0).putAction('measured', code('measured'));
      await anyone.invoke('measured', { n: 1 });
      const texts: string[] = [];
      for (const { url } of [...cluster.controllers, ...cluster.invokers]) {
        expect(await (await fetch(`${url}/ping`)).text()).toBe('pong');
        const answer = await fetch(`${url}/metrics`);
        expect([answer.status, answer.headers.get('content-type')]).toEqual([
          200,
          expect.stringMatching(/^text\/plain/),
        ]);
        const text = await answer.text();
        for (const line of text.split('\n').filter(Boolean))
          expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{.*\})? \S+)$/);
        texts.push(text);
      }
      const counted = (pattern: RegExp): number => texts.filter((text) => pattern.test(text)).length;
      expect(counted(/^gpuwhisk_controller_records_pending 0$/m)).toBe(cluster.controllers.length);
      expect(counted(/^gpuwhisk_invoker_records_pending 0$/m)).toBe(cluster.invokers.length);
      expect(counted(/^openwhisk_action_activations_total\{.*action="measured".*\} 1$/m)).toBe(1);
    },
    testMs,
  );

  test(
    'user events of controllers and invokers are in their topic',
    async () => {
      const connection = { brokers: [cluster.kafka.brokers], clientId: 'test' };
      const bus = new KafkaBus({ connection, clock: systemClock, random: systemRandom });
      const events: JsonObject[] = [];
      try {
        await bus.ensureTopic(eventsTopic, { durable: false, maxPendingMessages: 1000, maxPendingBytes: Infinity });
        await bus.subscribe(eventsTopic, 'test', { maxInFlight: 100 }, (delivery) => {
          events.push(delivery.message);
          delivery.done();
        });
        await caller(0).putAction('told', code('told'));
        const { activationId } = await caller(0).invoke('told', { n: 1 });
        const told = (fits: (event: JsonObject, body: JsonObject) => boolean) =>
          eventually('the event comes', () =>
            Promise.resolve(events.find((event) => fits(event, event.body as JsonObject))),
          );
        const ended = await told((_, body) => body.activationId === activationId);
        expect(ended).toMatchObject({
          source: expect.stringMatching(/^invoker\d+$/),
          eventType: 'Activation',
          subject: 'guest',
          namespace: 'guest',
          userId: cluster.auth.split(':')[0],
          body: { name: 'guest/told', statusCode: 0, conductor: false, kind: expect.stringMatching(/^nodejs:/) },
        });
        const metric = await told(
          (event, body) => body.metricName === 'ConcurrentInvocations' && event.namespace === 'guest',
        );
        expect(metric).toMatchObject({ source: expect.stringMatching(/^controller\d+$/), eventType: 'Metric' });
      } finally {
        await bus.close();
      }
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
    'a controller is killed under load: the other goes on, what was accepted ends and counts as in flight no more',
    async () => {
      const [victim] = cluster.controllers;
      if (victim === undefined) throw new Error('no controller');
      // Runs of this action end while the controller is away.
      await caller(0).putAction(
        'second',
        'function main() { return new Promise((end) => setTimeout(end, 1000, {})); }',
      );
      const before: string[] = [];
      for (let n = 0; n < 3; n++) before.push(await caller(0).submit('second'));
      const accepted = await submitUntil(new Promise((resolve) => setTimeout(resolve, 500)).then(() => kill(victim)));
      expect((await caller(1).invoke('load')).status).toBe(200);
      for (const id of accepted) await caller(1).record(id, waitMs);
      await untilUp(2);
      expect((await caller(0).invoke('load')).status).toBe(200);
      const url = `redis://127.0.0.1:${cluster.redis.port}`;
      const state = await openRedisState({ url, prefix: 'gpuwhisk:', timeoutMs: 2000 });
      try {
        // A call that was under way when the controller was killed may count until its completion is given up.
        const ids = new Set([...before, ...accepted]);
        await eventually('nothing that was accepted counts as in flight', async () => {
          const held = await state.holds('inFlight').all();
          return held.some(({ token }) => ids.has(token.split(' ')[0] ?? '')) ? undefined : true;
        });
      } finally {
        await state.close();
      }
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
      // Each new leader loads the learned data, and a job trains a predictor from these data.
      await eventually('a predictor is learned', () => learnedModel(cluster.couchdb.url));
    },
    testMs,
  );

  test(
    'each process is stopped in order and started anew under load: every answer is right, and what was accepted ends',
    async () => {
      await caller(0).putAction('load', code('load'));
      // So long that a run is under way whenever a process is told to stop.
      await caller(0).putAction(
        'slow',
        'function main() { return new Promise((end) => setTimeout(() => end({ slept: true }), 300)); }',
      );
      await untilUp(2);
      const restart = async (member: Member): Promise<void> => {
        const { pid } = member;
        process.kill(pid, 'SIGTERM');
        await eventually(`${member.name} has been started again`, async () =>
          member.pid !== pid && (await fetch(`${member.url}/ping`)).ok ? true : undefined,
        );
        await untilUp(2);
      };
      const restarts = (async () => {
        for (const member of [...cluster.invokers, ...cluster.controllers]) await restart(member);
      })();
      const statuses = new Set<number>();
      let isOver = false;
      const calling = (async () => {
        while (!isOver) {
          // A caller without an answer, because its controller has ended, asks again.
          const answer = await anyone.invokeForResult('slow').catch(() => undefined);
          if (answer !== undefined) statuses.add(answer.status);
        }
      })();
      const accepted = await submitUntil(restarts);
      isOver = true;
      await calling;
      expect([...statuses]).toEqual([200]);
      expect(accepted.length).toBeGreaterThan(0);
      for (const id of accepted) {
        const { response } = await anyone.record(id, waitMs);
        expect(response.success).toBe(true);
      }
    },
    2 * testMs,
  );

  test(
    'rented nodes are revoked in a storm under load: what was accepted ends, and others take their place',
    async () => {
      // More runs at once than the other nodes' GPUs take.
      const gpu = { memoryMiB: 2000, mpsPercent: 50 };
      const slow = 'function main() { return new Promise((end) => setTimeout(() => end({ ran: true }), 1000)); }';
      for (const [name, idempotent] of [
        ['again', true],
        ['once', false],
      ] as const) {
        await caller(0).putAction(name, slow, { annotations: { gpu, idempotent } });
      }
      const rent = (wanted: number): Promise<unknown> => operator('PUT', 'gpu/nodes', { wanted });
      const rented = async (): Promise<RentedNode[]> => {
        const { nodes } = (await operator('GET', 'gpu/nodes')) as { nodes: RentedNode[] };
        return nodes.filter(({ machine }) => machine !== undefined);
      };
      /** Two further nodes that are ready. */
      const ready = (before: readonly RentedNode[]): Promise<RentedNode[]> =>
        eventually(
          'two more rented nodes are ready',
          async () => {
            const old = new Set(before.map(({ machine }) => machine));
            const nodes = (await rented()).filter(({ state, machine }) => state === 'ready' && !old.has(machine));
            return nodes.length === 2 ? nodes : undefined;
          },
          startMs,
        );
      await rent(2);
      const first = await ready([]);
      const storm = (async () => {
        let nodes = first;
        for (const inS of [1, 0]) {
          await new Promise((resolve) => setTimeout(resolve, 1000));
          for (const { invoker } of nodes) {
            await eventually('a notice is taken', () => operator('PUT', `gpu/nodes/${invoker}/notice`, { inS }));
          }
          await new Promise((resolve) => setTimeout(resolve, inS * 1000));
          for (const { machine } of nodes) process.kill(await pidOf(machine), 'SIGKILL');
          if (inS > 0) nodes = await ready(first);
        }
      })();
      // Callers wait for each record: however long the storm takes, few activations are queued.
      const records = new Map<string, ApiActivation>();
      const recorded = async (id: string): Promise<unknown> => records.set(id, await anyone.record(id, waitMs));
      const call = async (action: string): Promise<string[]> =>
        (await Promise.all(Array.from({ length: callersEach }, () => submitUntil(storm, action, recorded)))).flat();
      const [again] = await Promise.all([call('again'), call('once')]);
      await rent(0);
      expect(again.filter((id) => records.get(id)?.response.success !== true)).toEqual([]);
      const used = new Set(
        [...records.values()].map((each) => (annotation(each, 'gpu') as { device?: string } | undefined)?.device),
      );
      expect(first.some(({ devices }) => devices.some((device) => used.has(device)))).toBe(true);
      await eventually('all machines are given back', async () => ((await rented()).length === 0 ? true : undefined));
      await untilUp(2);
    },
    6 * testMs,
  );
});

/** A rented node as the API shows it. */
interface RentedNode {
  invoker: string;
  state: string;
  machine: string;
  devices: string[];
}

/** The process of an emulated machine. */
async function pidOf(machine: string): Promise<number> {
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
    const words = line.split('\0');
    if (words.includes('invoker') && words[words.indexOf('--name') + 1] === machine) return Number(pid);
  }
  throw new Error(`machine ${machine} has no process`);
}
