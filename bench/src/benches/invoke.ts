import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { guestHeaders, invokePath, smallBody, type Api } from '../api.js';
import type { Bench, BenchContext, Measurement } from '../bench.js';
import { startReference, type Server, runParts, type PartPlatform } from '../servers.js';
import { measureFresh } from './invoke-fresh.js';
import { measureMix } from './invoke-mix.js';
import { measurePython, measureSteady } from './invoke-steady.js';

/** The two servers of a run: the platform and the bare server. */
export interface Pair extends PartPlatform {
  reference: Server;
}

/** Parts of a run beside other platforms: those that have figures of them or of a function in their language. */
const comparedParts = ['steady', 'python'];

type Part = (context: BenchContext, pair: Pair) => Promise<Measurement[]>;
const parts: Readonly<Record<string, Part>> = {
  steady: measureSteady,
  python: measurePython,
  fresh: measureFresh,
  mix: measureMix,
  async: measureAsync,
};

/** No-op invocations, compared with a bare server: latency, throughput, processor time, memory. */
export const invoke: Bench = {
  summary: 'no-op invocations, beside a bare server',
  parts: Object.keys(parts),
  async run(context) {
    const reference = await startReference(context.cleanup);
    const { options } = context;
    const compared = options.beside.length > 0 && options.parts.length === 0;
    const chosen = compared ? { ...options, parts: comparedParts } : options;
    return runParts({ ...context, options: chosen }, parts, (own) => ({ ...own, reference }));
  },
};

const connections = 64;
const loadS = 20;
/** After the load has ended, every accepted activation has to be recorded within this time, ms. */
const recordedWithinMs = 5000;
const pageRows = 200;
const action = 'noopAsync';

/** Non-blocking no-op invocations: accepted invocations a second, and a check that each is recorded. */
async function measureAsync(context: BenchContext, { platform, api }: Pair): Promise<Measurement[]> {
  const { options, load, say, temporaryDir } = context;
  const base = { baseUrl: platform.url, headers: guestHeaders, body: smallBody, connections, seed: options.seed };
  await api.putAction(action);
  await load.run({ ...base, paths: [invokePath(action, true)], seconds: 3 });
  await sleep(2000);

  const sinceMs = Date.now();
  const bodiesFile = join(temporaryDir, 'accepted.txt');
  const result = await load.run({ ...base, paths: [invokePath(action, false)], seconds: loadS, bodiesFile });
  const endedAtMs = performance.now();
  const accepted = acceptedIds(await readFile(bodiesFile, 'utf8'));
  const refused = result.statuses.get(429) ?? 0;
  const counted = [...result.statuses.values()].reduce((sum, count) => sum + count, 0);
  say(`  accepted ${accepted.size}, refused ${refused} of ${counted}`);

  let recorded = 0;
  let recordedAfterMs = 0;
  while (recorded < accepted.size && performance.now() - endedAtMs < recordedWithinMs) {
    recorded = await api.countActivations(action, sinceMs);
    recordedAfterMs = performance.now() - endedAtMs;
    if (recorded < accepted.size) await sleep(100);
  }
  const late = Math.max(0, accepted.size - recorded);
  if (late > 0) {
    say(`  ${late} activations were not recorded ${recordedWithinMs} ms after the load`);
    await untilSettled(api, sinceMs);
  }

  // Compares ids, since a count also includes requests that the client cut off at the end.
  const ids = await recordedIds(api, sinceMs);
  const missing = [...accepted].filter((id) => !ids.has(id));
  if (missing.length > 0)
    throw new Error(`${missing.length} accepted activations have no record, such as ${missing[0]}`);
  return [
    { name: 'asyncPerS', value: accepted.size / loadS },
    { name: 'asyncMissing', value: late },
    { name: 'asyncRecordedAfterMs', value: recordedAfterMs },
    { name: 'asyncRefused', value: refused },
    { name: 'asyncErrors', value: counted - accepted.size - refused + result.socketErrors },
    { name: 'asyncP50Ms', value: result.p50Ms },
    { name: 'asyncP99Ms', value: result.p99Ms },
  ];
}

/** The activation ids in the bodies of 202 answers, one a line. Throws for a line without an id. */
export function acceptedIds(text: string): Set<string> {
  const ids = new Set<string>();
  for (const line of text.split('\n')) {
    if (line === '') continue;
    const { activationId } = JSON.parse(line) as { activationId?: unknown };
    if (typeof activationId !== 'string') throw new Error(`not an accepted activation: ${line}`);
    ids.add(activationId);
  }
  return ids;
}

/** Waits until the count of records has not changed for two seconds, at most a minute. */
async function untilSettled(api: Api, sinceMs: number): Promise<void> {
  let last = -1;
  for (let waited = 0; waited < 30; waited += 1) {
    const count = await api.countActivations(action, sinceMs);
    if (count === last) return;
    last = count;
    await sleep(2000);
  }
}

/** The ids of all activations since `sinceMs`, listed in windows of time so that no `skip` grows large. */
async function recordedIds(api: Api, sinceMs: number): Promise<Set<string>> {
  const ids = new Set<string>();
  const windowMs = 500;
  const endMs = Date.now();
  for (let from = sinceMs; from <= endMs; from += windowMs) {
    for (let skip = 0; ; skip += pageRows) {
      const query = `since=${from}&upto=${from + windowMs - 1}&limit=${pageRows}&skip=${skip}&name=${action}`;
      const rows = (await api.json('GET', `/api/v1/namespaces/_/activations?${query}`)) as { activationId: string }[];
      for (const { activationId } of rows) ids.add(activationId);
      if (rows.length < pageRows) break;
    }
  }
  return ids;
}
