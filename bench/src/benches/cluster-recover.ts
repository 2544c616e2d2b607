import { invokePath, parseStartCounts, smallBody } from '../api.js';
import type { BenchContext, Measurement } from '../bench.js';
import { storedRecords, untilStored } from '../cluster/records.js';
import { startCluster, type Cluster, type Member } from '../cluster/running-cluster.js';
import { offer } from '../load/offered.js';
import { percentile } from '../statistics.js';

const actionCount = 8;
const perS = 20;
const beforeMs = 8000;
const afterMs = 20_000;
const quietMs = 60_000;
const blockingMs = 75_000;
/** Normal is what it was before, twice over. */
const normalFactor = 2;
const windowMs = 1000;

interface Probe {
  /** Undefined: there was no answer. */
  status: number | undefined;
  /** When it was answered, on the clock of performance.now(). */
  atMs: number;
  tookMs: number;
}

/** An invoker is killed under load: when its activations have ended, and when the others' callers notice nothing. */
export async function measureRecover(context: BenchContext): Promise<Measurement[]> {
  const cluster = await startCluster(context, 'recover', { controllers: 2, invokers: 3 });
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
    ...{ baseUrl: cluster.url, headers: cluster.headers, body: smallBody, perS },
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
  return [
    // Not within quietMs: it may be never.
    { name: 'recoverS', value: (left.length > 0 ? quietMs : recoveredMs - killedMs) / 1000 },
    { name: 'recoverLost', value: missing.length / Math.max(1, accepted.length) },
    { name: 'recoverUnanswered', value: result.failed },
    ...(others.length > 0 ? othersFigures(probes, killedMs) : []),
  ];
}

/** The invoker whose count of runs rises with a run of the action. */
async function homeOf(cluster: Cluster, action: string): Promise<Member> {
  await cluster.api(0).invoke(action);
  const before = await Promise.all(cluster.invokers.map(runsOf));
  await cluster.api(0).invoke(action);
  for (let look = 0; look < 100; look += 1) {
    const after = await Promise.all(cluster.invokers.map(runsOf));
    const at = after.findIndex((runs, index) => runs > (before[index] ?? 0));
    if (at >= 0) return cluster.invokers[at] as Member;
    await pause(50);
  }
  throw new Error(`no invoker has counted a run of ${action}`);
}

/** Runs that an invoker has counted. */
export async function runsOf({ url }: Pick<Member, 'url'>): Promise<number> {
  const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const { cold, prewarmed, injected, warm } = parseStartCounts(await answer.text());
  return cold + prewarmed + injected + warm;
}

/** Blocking calls of an action, one after the other. */
async function probe(cluster: Cluster, action: string, signal: AbortSignal, probes: Probe[]): Promise<void> {
  while (!signal.aborted) {
    const beganMs = performance.now();
    const status = await fetch(`${cluster.url}${invokePath(action, true)}`, {
      ...{ method: 'POST', headers: cluster.headers, body: smallBody },
      // Longer than a caller is kept waiting.
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

/** By seconds after the kill: the last one in which the others were slower than is normal. */
function othersFigures(probes: readonly Probe[], killedMs: number): Measurement[] {
  const before = probes.filter(({ atMs }) => atMs <= killedMs);
  if (before.length === 0) throw new Error('nobody was answered before: this machine has no time for the load');
  const normalMs = percentile(
    before.map(({ tookMs }) => tookMs),
    99,
  );
  let othersRecoverS = 0;
  let worstMs = 0;
  for (let window = 0; window * windowMs < afterMs; window += 1) {
    const fromMs = killedMs + window * windowMs;
    const within = probes.filter(({ atMs }) => atMs > fromMs && atMs <= fromMs + windowMs);
    // Nobody was answered: that is slow.
    const p99Ms = within.length === 0 ? quietMs : Math.max(...within.map(({ tookMs }) => tookMs));
    worstMs = Math.max(worstMs, p99Ms);
    if (p99Ms > normalFactor * normalMs) othersRecoverS = ((window + 1) * windowMs) / 1000;
  }
  return [
    { name: 'othersRecoverS', value: othersRecoverS },
    { name: 'othersErrors', value: probes.filter(({ status }) => status !== 200).length },
    { name: 'othersNormalP99Ms', value: normalMs },
    { name: 'othersWorstMs', value: worstMs },
  ];
}

const pause = (durationMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, durationMs));
