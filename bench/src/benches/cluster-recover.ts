import { invokePath, smallBody } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import { storedRecords, untilStored, startCluster, type Cluster, type Member } from '../cluster/running-cluster.js';
import { offer } from '../load/offered.js';
import { median, percentile } from '../statistics.js';

const actionCount = 8;
const perS = 20;
const beforeMs = 16_000;
/** Span before the kill whose latencies count as normal, ms; earlier, containers start and processes compile code. */
const normalMsOver = 8000;
const afterMs = 20_000;
const quietMs = 60_000;
const blockingMs = 75_000;
/** A second counts as normal up to this multiple of the median of the seconds before the kill. */
const normalFactor = 2;
const windowMs = 1000;
/** Kills whose median is taken, second by second. */
const maxKills = 3;

interface Probe {
  /** Undefined if there was no answer. */
  status: number | undefined;
  /** Time of the answer on the clock of performance.now(), ms. */
  atMs: number;
  tookMs: number;
}

/** Result of one kill. */
interface Kill {
  recoverS: number;
  /** Fraction of the accepted activations that were never recorded. */
  lost: number;
  /** Calls without an answer. */
  unanswered: number;
  /** P99 of calls of the other invokers' actions, ms, by seconds before and after the kill, and their errors. */
  beforeMs: number[];
  afterMs: number[];
  errors: number;
}

/**
 * Kills an invoker under load: time until its activations have ended, and time until other callers see normal latency.
 */
export async function measureRecover(context: BenchContext): Promise<Measurement[]> {
  const kills: Kill[] = [];
  for (let round = 0; round < Math.min(maxKills, context.options.rounds); round += 1) {
    kills.push(await killOne(context, `recover${round}`));
  }
  const bySecond = (of: (kill: Kill) => number[]): number[] =>
    of(kills[0] as Kill).map((_, second) => median(kills.map((kill) => of(kill)[second] ?? quietMs)));
  const normalMs = median(bySecond(({ beforeMs }) => beforeMs));
  const after = bySecond(({ afterMs }) => afterMs);
  const lastSlow = after.findLastIndex((p99Ms) => p99Ms > normalFactor * normalMs);
  const total = (of: (kill: Kill) => number): number => kills.reduce((sum, kill) => sum + of(kill), 0);
  return [
    medianOf(
      'recoverS',
      kills.map(({ recoverS }) => recoverS),
    ),
    { name: 'recoverLost', value: Math.max(...kills.map(({ lost }) => lost)) },
    { name: 'recoverUnanswered', value: total(({ unanswered }) => unanswered) },
    { name: 'othersRecoverS', value: ((lastSlow + 1) * windowMs) / 1000 },
    { name: 'othersErrors', value: total(({ errors }) => errors) },
    { name: 'othersNormalP99Ms', value: normalMs },
    { name: 'othersWorstP99Ms', value: Math.max(...after) },
  ];
}

/** Kills one invoker in a cluster of its own. */
async function killOne(context: BenchContext, name: string): Promise<Kill> {
  const cluster = await startCluster(context, name, { controllers: 2, invokers: 3 });
  const actions = Array.from({ length: actionCount }, (_, at) => `noop${at}`);
  const homes = new Map<string, Member>();
  for (const action of actions) {
    await cluster.api(0).putAction(action);
    homes.set(action, await homeOf(cluster, action));
  }
  const victim = homes.get(actions[0] as string) as Member;
  const others = actions.filter((action) => homes.get(action) !== victim);
  context.say(`  ${victim.name} is home to ${actionCount - others.length} of ${actionCount} actions`);

  const ending = new AbortController();
  const accepted: { id: string; atMs: number }[] = [];
  const load = offer({
    baseUrl: cluster.url,
    headers: cluster.headers,
    body: smallBody,
    perS,
    paths: actions.map((action) => invokePath(action, false)),
    signal: ending.signal,
    onAccepted: (id) => accepted.push({ id, atMs: performance.now() }),
  });
  const probes: Probe[] = [];
  const probing = others.map((action) => probe(cluster, action, ending.signal, probes));
  await pause(beforeMs);

  const killedMs = performance.now();
  process.kill(victim.pid, 'SIGKILL');
  let left = accepted.filter(({ atMs }) => atMs <= killedMs).map(({ id }) => id);
  let recoveredMs = killedMs;
  while (left.length > 0 && performance.now() - killedMs < quietMs) {
    const found = await storedRecords(cluster, left);
    if (found.size > 0) recoveredMs = performance.now();
    left = left.filter((id) => !found.has(id));
    await pause(100);
  }
  await pause(Math.max(0, afterMs - (performance.now() - killedMs)));
  ending.abort();
  const result = await load;
  await Promise.all(probing);
  const { missing } = await untilStored(
    cluster,
    accepted.map(({ id }) => id),
    quietMs,
  );
  await cluster.stop();
  const seconds = (count: number, from: number): number[] =>
    Array.from({ length: count }, (_, at) => p99OfSecond(probes, killedMs + (from + at) * windowMs));
  const found: Kill = {
    // A record that is missing after quietMs counts as quietMs, since it may never come.
    recoverS: (left.length > 0 ? quietMs : recoveredMs - killedMs) / 1000,
    lost: missing.length / Math.max(1, accepted.length),
    unanswered: result.failed,
    beforeMs: seconds(normalMsOver / windowMs, -normalMsOver / windowMs),
    afterMs: seconds(afterMs / windowMs, 0),
    errors: probes.filter(({ status }) => status !== 200).length,
  };
  const texts = [found.beforeMs, found.afterMs].map((values) => values.map((ms) => ms.toFixed(0)).join(' '));
  context.say(`  p99 of others by seconds, ms: ${texts.join(' | killed | ')}; ${probes.length} calls`);
  return found;
}

/** The invoker whose count of runs grows when the action runs. */
async function homeOf(cluster: Cluster, action: string): Promise<Member> {
  const counts = (): Promise<number[]> => Promise.all(cluster.invokers.map((invoker) => runsOf(invoker, action)));
  await cluster.api(0).invoke(action);
  const before = await counts();
  await cluster.api(0).invoke(action);
  for (let look = 0; look < 100; look += 1) {
    const after = await counts();
    const at = after.findIndex((runs, index) => runs > (before[index] ?? 0));
    if (at >= 0) return cluster.invokers[at] as Member;
    await pause(50);
  }
  throw new Error(`no invoker has counted a run of ${action}`);
}

/** Runs of an action that an invoker has counted. Health tests count as runs, too. */
export async function runsOf({ url }: Pick<Member, 'url'>, action: string): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const counts = (await answer.text()).matchAll(/^openwhisk_action_activations_total\{(.*)\} (\d+)$/gm);
  return [...counts].reduce(
    (runs, [, labels, count]) => runs + (labels?.includes(`action="${action}"`) ? Number(count) : 0),
    0,
  );
}

/** Blocking calls of an action, one after the other. */
async function probe(cluster: Cluster, action: string, signal: AbortSignal, probes: Probe[]): Promise<void> {
  while (!signal.aborted) {
    const beganMs = performance.now();
    const status = await fetch(`${cluster.url}${invokePath(action, true)}`, {
      method: 'POST',
      headers: cluster.headers,
      body: smallBody,
      // Longer than the platform keeps a blocking caller waiting.
      signal: AbortSignal.timeout(blockingMs),
    }).then(
      async (answer) => {
        await answer.text();
        return answer.status;
      },
      () => undefined,
    );
    const atMs = performance.now();
    probes.push({ atMs, tookMs: atMs - beganMs, status });
    await pause(20);
  }
}

function p99OfSecond(probes: readonly Probe[], fromMs: number): number {
  const within = probes.filter(({ atMs }) => atMs > fromMs && atMs <= fromMs + windowMs);
  // A second without an answer counts as slow.
  if (within.length === 0) return quietMs;
  return percentile(
    within.map(({ tookMs }) => tookMs),
    99,
  );
}

const pause = (durationMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, durationMs));
