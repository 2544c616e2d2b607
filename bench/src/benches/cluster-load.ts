import { invokePath, smallBody } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { watchCluster, untilStored, startCluster, type Cluster } from '../cluster/running-cluster.js';
import { offer, type OfferedResult } from '../load/offered.js';
import { median, percentile } from '../statistics.js';

const perS = 1000;
/** Warm-up, in which processes compile code and containers start; only lost activations count in it. */
const warmUpS = 15;
/** One of this many accepted activations is requested until its record can be read. */
const askedEvery = 100;
/**
 * Load of the list measurement, which runs before the main load. Its rate is one that the stand-in for CouchDB can
 * index: it takes 1 ms of processor time a record.
 */
const [listedPerS, listedS, listedEvery] = [50, 20, 50];
/** Pause between polls, ms; at least a tenth of the time so far, so that polling adds little load. */
const askMs = 20;
const listMs = 250;
const askShare = 0.1;
const lookLimitMs = 60_000;
/** An activation is lost if its record is missing after nothing has been stored for this time, ms. */
const quietMs = 60_000;

/** Non-blocking no-ops at a steady rate: lost activations, time until a record can be read, and memory. */
export async function measureLoad(context: BenchContext): Promise<Measurement[]> {
  const { options, say } = context;
  const cluster = await startCluster(context, 'load', { controllers: 2, invokers: 2 });
  await cluster.api(0).putAction('noop');
  for (const at of [0, 1]) await cluster.api(at).invoke('noop');

  const viewLags = await measureViewLags(cluster);
  const early: string[] = [];
  await offerNoops(cluster, perS, warmUpS, (id) => early.push(id));
  const accepted: string[] = [];
  const lags: Promise<number>[] = [];
  const watch = watchCluster(cluster, say, () => `${accepted.length} accepted`);
  const result = await offerNoops(cluster, perS, options.loadSeconds, (id) => {
    accepted.push(id);
    if (accepted.length % askedEvery === 0) lags.push(untilThere(cluster, 0, id, askMs, isRecord));
  });
  const taken = watch.stop(accepted.length);
  const refused = [...result.refused.values()].reduce((sum, count) => sum + count, 0);
  say(`  sent ${result.sent}, accepted ${accepted.length}, refused ${JSON.stringify([...result.refused])}`);
  const endedMs = performance.now();
  const all = [...early, ...accepted];
  const { missing } = await untilStored(cluster, all, quietMs);
  const drainedS = (performance.now() - endedMs) / 1000 - (missing.length > 0 ? quietMs / 1000 : 0);
  const seconds = (values: readonly number[]): number[] => values.map((ms) => ms / 1000);
  const storeLags = seconds(await Promise.all(lags));
  await cluster.stop();
  return [
    { name: 'lost', value: all.length === 0 ? 1 : missing.length / all.length },
    { name: 'storeLagS', value: percentile(storeLags, 99) },
    { name: 'storeLagP50S', value: median(storeLags) },
    { name: 'viewLagP99S', value: percentile(seconds(viewLags), 99) },
    { name: 'acceptedPerS', value: accepted.length / options.loadSeconds },
    { name: 'refusedShare', value: refused / Math.max(1, result.sent) },
    { name: 'unanswered', value: result.failed },
    { name: 'heldBackShare', value: result.heldBack / (result.sent + result.heldBack) },
    { name: 'drainedS', value: drainedS },
    ...taken,
  ];
}

/** Times from the 202 to the first list that shows the activation, ms. */
async function measureViewLags(cluster: Cluster): Promise<number[]> {
  const lags: Promise<number>[] = [];
  let accepted = 0;
  await offerNoops(cluster, listedPerS, listedS, (id) => {
    if (accepted++ % listedEvery === 0) lags.push(untilThere(cluster, 1, id, listMs, isListed));
  });
  return Promise.all(lags);
}

function offerNoops(
  cluster: Cluster,
  perS: number,
  seconds: number,
  onAccepted: (id: string) => void,
): Promise<OfferedResult> {
  return offer({
    baseUrl: cluster.url,
    headers: cluster.headers,
    body: smallBody,
    perS,
    paths: [invokePath('noop', false)],
    signal: AbortSignal.timeout(seconds * 1000),
    onAccepted,
  });
}

/** Sends a GET to a controller; each caller has a connection of its own. */
type Get = (path: string) => Promise<{ status: number; text: string }>;

/** Time until controller `at` shows the activation, ms; at most lookLimitMs. */
async function untilThere(
  cluster: Cluster,
  at: number,
  id: string,
  everyMs: number,
  isThere: (get: Get, id: string) => Promise<boolean>,
): Promise<number> {
  const get: Get = async (path) => {
    const signal = AbortSignal.timeout(lookLimitMs);
    const answer = await fetch(`${cluster.controllers[at]?.url}${path}`, { headers: cluster.headers, signal });
    return { status: answer.status, text: await answer.text() };
  };
  const beganMs = performance.now();
  while (performance.now() - beganMs < lookLimitMs) {
    if (await isThere(get, id)) break;
    const waitMs = Math.max(everyMs, (performance.now() - beganMs) * askShare);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
  return performance.now() - beganMs;
}

async function isRecord(get: Get, id: string): Promise<boolean> {
  return (await get(`/api/v1/namespaces/_/activations/${id}`)).status === 200;
}

/**
 * Whether a list shows the activation. The id begins with the time at which the activation was made, which bounds the
 * list.
 */
async function isListed(get: Get, id: string): Promise<boolean> {
  const at = Number.parseInt(id.slice(0, 12), 16);
  const path = `/api/v1/namespaces/_/activations?limit=200&since=${at}&upto=${at + 100}`;
  const { status, text } = await get(path);
  return status === 200 && text.includes(id);
}
