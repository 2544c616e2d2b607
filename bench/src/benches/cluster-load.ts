import { invokePath, smallBody, type Api } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { untilStored } from '../cluster/records.js';
import { startCluster, type Cluster } from '../cluster/running-cluster.js';
import { offer } from '../load/offered.js';
import { memoryOf } from '../processes.js';
import { median, percentile } from '../statistics.js';

const perS = 1000;
/** One in so many accepted activations is asked for until it is there. */
const askedEvery = 100;
/** Lists are looked at beforehand, in a load that the stand-in for CouchDB can index: it takes 1 ms of processor time a record. */
const [listedPerS, listedS, listedEvery] = [50, 20, 50];
const askMs = 20;
const listMs = 250;
const lookLimitMs = 60_000;
const memoryEveryMs = 2000;
/** After the load nothing has been stored for so long: what is missing is lost. */
const quietMs = 60_000;

/** Non-blocking no-ops at a steady rate: what is lost, when records can be read, and what memory does. */
export async function measureLoad(context: BenchContext): Promise<Measurement[]> {
  const { options, say } = context;
  const cluster = await startCluster(context, 'load', { controllers: 2, invokers: 2 });
  await cluster.api(0).putAction('noop');
  for (const at of [0, 1]) await cluster.api(at).invoke('noop');

  const viewLags = await measureViewLags(cluster);
  const accepted: string[] = [];
  const lags: Promise<number>[] = [];
  const memory = watchMemory(cluster);
  const result = await offer({
    ...{ baseUrl: cluster.url, headers: cluster.headers, body: smallBody, perS },
    paths: [invokePath('noop', false)],
    signal: AbortSignal.timeout(options.loadSeconds * 1000),
    onAccepted: (id) => {
      accepted.push(id);
      if (accepted.length % askedEvery === 0) lags.push(untilThere(cluster.api(0), id, askMs, isRecord));
    },
  });
  const memorySamples = memory.stop();
  const refused = [...result.refused.values()].reduce((sum, count) => sum + count, 0);
  say(`  sent ${result.sent}, accepted ${accepted.length}, refused ${JSON.stringify([...result.refused])}`);
  const endedMs = performance.now();
  const { missing } = await untilStored(cluster, accepted, quietMs);
  const drainedS = (performance.now() - endedMs) / 1000 - (missing.length > 0 ? quietMs / 1000 : 0);
  const seconds = (values: readonly number[]): number[] => values.map((ms) => ms / 1000);
  const storeLags = seconds(await Promise.all(lags));
  await cluster.stop();
  return [
    { name: 'lost', value: accepted.length === 0 ? 1 : missing.length / accepted.length },
    { name: 'storeLagS', value: percentile(storeLags, 99) },
    { name: 'storeLagP50S', value: median(storeLags) },
    { name: 'viewLagP99S', value: percentile(seconds(viewLags), 99) },
    { name: 'acceptedPerS', value: accepted.length / options.loadSeconds },
    { name: 'refusedShare', value: refused / Math.max(1, result.sent) },
    { name: 'unanswered', value: result.failed },
    { name: 'heldBackShare', value: result.heldBack / (result.sent + result.heldBack) },
    { name: 'drainedS', value: drainedS },
    ...memorySamples,
  ];
}

/** From the 202 to the first list that shows the activation, ms. */
async function measureViewLags(cluster: Cluster): Promise<number[]> {
  const lags: Promise<number>[] = [];
  let accepted = 0;
  await offer({
    ...{ baseUrl: cluster.url, headers: cluster.headers, body: smallBody, perS: listedPerS },
    paths: [invokePath('noop', false)],
    signal: AbortSignal.timeout(listedS * 1000),
    onAccepted: (id) => {
      if (accepted++ % listedEvery === 0) lags.push(untilThere(cluster.api(1), id, listMs, isListed));
    },
  });
  return Promise.all(lags);
}

/** Time until the activation can be seen, ms; at most lookLimitMs. */
async function untilThere(
  api: Api,
  id: string,
  everyMs: number,
  isThere: (api: Api, id: string) => Promise<boolean>,
): Promise<number> {
  const beganMs = performance.now();
  while (performance.now() - beganMs < lookLimitMs) {
    if (await isThere(api, id)) break;
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
  return performance.now() - beganMs;
}

async function isRecord(api: Api, id: string): Promise<boolean> {
  return (await api.send('GET', `/api/v1/namespaces/_/activations/${id}`)).status === 200;
}

/** Its id begins with the time at which it was made. */
async function isListed(api: Api, id: string): Promise<boolean> {
  const at = Number.parseInt(id.slice(0, 12), 16);
  const path = `/api/v1/namespaces/_/activations?limit=200&since=${at}&upto=${at + 100}`;
  const { status, text } = await api.send('GET', path);
  return status === 200 && text.includes(id);
}

/** Samples the memory of controllers and invokers. */
function watchMemory(cluster: Cluster): { stop(): Measurement[] } {
  const samples: { atS: number; rssMiB: number }[] = [];
  const members = [...cluster.controllers, ...cluster.invokers];
  const beganMs = performance.now();
  const sample = (): void => {
    const rssMiB = members.reduce((sum, { pid }) => sum + memoryOf(pid).rssMiB, 0);
    samples.push({ atS: (performance.now() - beganMs) / 1000, rssMiB });
  };
  const timer = setInterval(sample, memoryEveryMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      const later = samples.slice(Math.floor(samples.length / 2));
      return [
        { name: 'memoryMiB', value: median(later.map(({ rssMiB }) => rssMiB)) },
        { name: 'memoryTrendMiBPerMin', value: slope(later) * 60 },
      ];
    },
  };
}

/** MiB a second, by least squares; 0 for one sample. */
function slope(samples: readonly { atS: number; rssMiB: number }[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [atS, rssMiB] = [mean(samples.map((one) => one.atS)), mean(samples.map((one) => one.rssMiB))];
  const spread = samples.reduce((sum, one) => sum + (one.atS - atS) ** 2, 0);
  return spread === 0 ? 0 : samples.reduce((sum, one) => sum + (one.atS - atS) * (one.rssMiB - rssMiB), 0) / spread;
}
