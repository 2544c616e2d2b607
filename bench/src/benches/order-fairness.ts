/* eslint-disable @typescript-eslint/no-non-null-assertion -- every task has features and solo time, policies name waiting tasks only, and arrays have an entry a namespace. */
import { randomFraction, seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import type { ReportedPlace } from '@gpuwhisk/gpu/simulate/node-rows';
import type { RunningTask, SchedulingEvent, Task } from '@gpuwhisk/gpu/view/view';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { dividedSms, gpuOf, profiledTask } from '@gpuwhisk/gpu/testing/fixtures';
import { viewOf } from '@gpuwhisk/gpu/testing/views';
import type { BenchContext, Measurement } from '../bench.js';
import { percentile } from '../statistics.js';

const gpuCount = 16;
const namespaces = 10;
const lastMs = 6000;
/** Requests a second of each namespace; all namespaces together offer six tenths of the GPUs' capacity. */
const ratePerS = 28;
/** Rate of the flooding namespace as a multiple of the others'. */
const flood = 20;
/** Limit of waiting and running requests of a namespace; the next request is answered 429. */
const concurrent = 100;
const flooding = 'n0';

interface Run {
  /** P99 of all namespaces but the flooding one, ms. */
  p99Ms: number;
  /** Solo time of the finished requests, by namespace, ms. */
  doneMs: number[];
  /** Solo time of the offered requests, by namespace, ms. */
  askedMs: number[];
}

/** Requests of all namespaces at random times, in order of arrival. */
function arrivals(seed: number, floodFactor: number): Task[] {
  const tasks: Task[] = [];
  for (let at = 0; at < namespaces; at += 1) {
    const random = seededRandom(seed * 1000 + at);
    const namespace = `n${at}`;
    const perMs = (ratePerS * (namespace === flooding ? floodFactor : 1)) / 1000;
    let arrivedAt = 0;
    for (let count = 0; ; count += 1) {
      arrivedAt -= Math.log(1 - randomFraction(random)) / perMs;
      if (arrivedAt > lastMs) break;
      const soloMs = 20 + 60 * randomFraction(random);
      const smUtil = 0.2 + 0.6 * randomFraction(random);
      const isStrict = count % 2 === 0;
      const changes = { namespace, memoryMiB: 3000, arrivedAt, ...(isStrict && { sloMs: 10 * soloMs }) };
      tasks.push(profiledTask(`${namespace} ${count}`, soloMs, smUtil, changes));
    }
  }
  return tasks.sort((one, other) => one.arrivedAt - other.arrivedAt);
}

/** A cluster whose GPUs behave exactly as the predictor says. */
class Cluster {
  private readonly running = new Map<string, { one: RunningTask; gpu: string; leftMs: number }>();
  at = 0;

  gpus(): ReportedPlace[] {
    return Array.from({ length: gpuCount }, (_, index) =>
      gpuOf(`g${index}`, { memoryMiB: 24_000, running: this.on(`g${index}`).map(({ one }) => one) }),
    );
  }

  start(task: Task, gpu: string, share: number): void {
    this.running.set(task.id, { one: { task, share, startedAt: this.at }, gpu, leftMs: task.soloMs! });
  }

  /** Advances time to `untilMs` or to the next end of a task; returns the task if one ended. */
  advance(untilMs: number): Task | undefined {
    const speeds = [...this.running.values()].map((entry) => ({ entry, slowdown: this.slowdownOf(entry) }));
    let next: (typeof speeds)[number] | undefined;
    let nextMs = untilMs - this.at;
    for (const speed of speeds) {
      const ms = speed.entry.leftMs * speed.slowdown;
      if (ms > nextMs) continue;
      nextMs = ms;
      next = speed;
    }
    for (const { entry, slowdown } of speeds) entry.leftMs -= nextMs / slowdown;
    this.at += nextMs;
    if (next === undefined) return undefined;
    const { task } = next.entry.one;
    this.running.delete(task.id);
    return task;
  }

  private on(gpu: string): { one: RunningTask; leftMs: number }[] {
    return [...this.running.values()].filter((entry) => entry.gpu === gpu);
  }

  private slowdownOf({ one, gpu }: { one: RunningTask; gpu: string }): number {
    const loads = (entry: RunningTask): Parameters<typeof dividedSms.slowdown>[0] => ({
      features: entry.task.features!,
      share: entry.share,
    });
    const others = this.on(gpu).filter((entry) => entry.one !== one);
    return dividedSms.slowdown(
      loads(one),
      others.map((entry) => loads(entry.one)),
    );
  }
}

/** Runs the requests of one seed to their end. */
function play(policy: Policy, tasks: readonly Task[]): Run {
  const cluster = new Cluster();
  const index = new Map(tasks.map((task) => [task.id, task]));
  const inside = new Map<string, number>();
  const waiting = new Map<string, Task>();
  const tookMs: number[] = [];
  const doneMs = new Array<number>(namespaces).fill(0);
  const askedMs = new Array<number>(namespaces).fill(0);
  const numberOf = ({ namespace }: Task): number => Number(namespace.slice(1));
  const decide = (event: SchedulingEvent): void => {
    const snapshot = viewOf({ at: cluster.at, gpus: cluster.gpus(), waiting: [...waiting.values()] });
    const { starts, bestEffort } = policy.decide(snapshot, event);
    for (const id of bestEffort) {
      const task = { ...index.get(id)! };
      delete task.sloMs;
      waiting.set(id, task);
    }
    for (const { task: id, gpu, share } of starts) {
      cluster.start(waiting.get(id)!, gpu, share);
      waiting.delete(id);
    }
  };
  let next = 0;
  while (next < tasks.length || waiting.size > 0) {
    const arrival = tasks[next];
    const ended = cluster.advance(arrival?.arrivedAt ?? Infinity);
    const task = ended ?? arrival!;
    const here = inside.get(task.namespace) ?? 0;
    if (ended !== undefined) {
      inside.set(ended.namespace, here - 1);
      // Only tasks that end while requests still arrive count; afterwards the queues drain.
      if (cluster.at <= lastMs) doneMs[numberOf(ended)]! += ended.soloMs!;
      if (ended.namespace !== flooding) tookMs.push(cluster.at - ended.arrivedAt);
      decide({ kind: 'completion', task: ended.id, gpu: '' });
      continue;
    }
    next += 1;
    askedMs[numberOf(task)]! += task.soloMs!;
    if (here >= concurrent) continue;
    inside.set(task.namespace, here + 1);
    waiting.set(task.id, task);
    decide({ kind: 'arrival', task: task.id });
  }
  return { p99Ms: percentile(tookMs, 99), doneMs, askedMs };
}

/** Max-min fair division of the finished work; no share exceeds its demand. */
function fairShares(done: number, asked: readonly number[]): number[] {
  const shares = new Array<number>(asked.length).fill(0);
  const open = new Set(asked.keys());
  let left = done;
  while (open.size > 0) {
    const each = left / open.size;
    const satisfied = [...open].filter((at) => asked[at]! <= each);
    for (const at of satisfied.length > 0 ? satisfied : open) {
      shares[at] = Math.min(asked[at]!, each);
      left -= shares[at];
      open.delete(at);
    }
  }
  return shares;
}

/** Jain's index of fairness: 1 if all parts are equal. */
function jainIndex(parts: readonly number[]): number {
  const total = parts.reduce((sum, part) => sum + part, 0);
  return total ** 2 / (parts.length * parts.reduce((sum, part) => sum + part ** 2, 0));
}

/**
 * `jain`: fairness of the work finished for ten namespaces over their max-min fair parts, where one namespace sends
 * twenty times as much as each other. `floodP99Ratio`: P99 of the others in that load over their P99 when all send
 * alike. The GPUs are invented and behave exactly as the policy's predictor says.
 */
export function measureFairness({ say }: BenchContext): Measurement[] {
  const policyOf = (): Policy =>
    makePolicy('faashare', { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) });
  const calm = play(policyOf(), arrivals(1, 1));
  const flooded = play(policyOf(), arrivals(1, flood));
  const done = flooded.doneMs.reduce((sum, ms) => sum + ms, 0);
  const fair = fairShares(done, flooded.askedMs);
  const parts = flooded.doneMs.map((ms, at) => ms / fair[at]!);
  say(`  P99 of the others: ${calm.p99Ms.toFixed(0)} ms, flooded ${flooded.p99Ms.toFixed(0)} ms`);
  return [
    { name: 'jain', value: jainIndex(parts) },
    { name: 'floodP99Ratio', value: flooded.p99Ms / calm.p99Ms },
  ];
}
