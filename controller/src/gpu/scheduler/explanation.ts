// An activation with a GPU in one sentence: where its time went, who was beside it, its SLO, and what would have helped.
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { GpuQueued, GpuRecord } from '@gpuwhisk/common/gpu';
import type { DecisionRecord, RunFacts } from '@gpuwhisk/common/gpu-decisions';

/** What is known of an activation, as its viewer may see it. */
export interface Explained {
  /** Its decisions, newest first. */
  decisions: readonly DecisionRecord[];
  /** Absent: it does not wait here. */
  queued?: GpuQueued;
  /** Absent: it has not ended, or its record is not kept. */
  record?: WhiskActivation;
}

/** Slowdown from which a run counts as slower than its time alone. */
const slower = 1.01;
/** Slowdown of a run without neighbours that is told: smaller ones are chance. */
const odd = 1.1;
/** Slowdown, relative to the number of runs on the GPU, that neighbours explain at most. */
const mostByEach = 1.25;
/** Part of the whole time from which the start of a warm instance is told. */
const longStart = 0.05;
/** Part of the whole time from which a wait is worth a hint though there is no SLO. */
const longWait = 0.5;

/** The sentence, without figures that are not known; undefined: nothing is known of the activation. */
export function explanation({ decisions, queued, record }: Explained): string | undefined {
  if (queued !== undefined) return waitingText(queued, decisions);
  const gpu = record && (parameterValue(record.annotations, 'gpu') as unknown as GpuRecord | undefined);
  if (record !== undefined && gpu !== undefined) return ranText(record, gpu, decisions);
  const [last] = decisions;
  if (last === undefined) return undefined;
  if (last.placement === undefined) return `Not run: ${last.reason}.`;
  const { slice, devices } = last.placement;
  return `Placed on ${slice ?? devices.join(', ')}${queueBracket(aheadOf(decisions) ?? 0, 1)}; its record is not there yet.`;
}

function waitingText({ position, waitedMs, sloMs, rejected }: GpuQueued, decisions: readonly DecisionRecord[]): string {
  const slo = sloMs === undefined ? '' : `, SLO ${timeText(sloMs)}`;
  const why = reasonIn(rejected);
  const because = why === undefined ? '' : `, as ${why}`;
  return `Queued for ${timeText(waitedMs)}${queueBracket(aheadOf(decisions) ?? position - 1, 1)}${slo}${because}.${helpText(why && roomHelp(why))}`;
}

/** Where the time of a run went, ms. */
interface Times {
  queueMs: number;
  /** From placement until the code was loaded. */
  startMs: number;
  runMs: number;
  totalMs: number;
}

function ranText(record: WhiskActivation, gpu: GpuRecord, decisions: readonly DecisionRecord[]): string {
  const times = timesOf(record, gpu);
  const { run, sloMs, waitedFor } = decisions.find(({ placement }) => placement !== undefined) ?? {};
  const ended: Ended = { times, gpu, run, sloMs, waitedFor, action: decisions[0]?.action ?? 'ACTION_NAME' };
  const ahead = aheadOf(decisions) ?? 0;
  const ways = waysOf(run);
  const isQueued = times.queueMs >= 1;
  const parts = [
    isQueued ? `queued ${timeText(times.queueMs)}${queueBracket(ahead, ways)}` : '',
    gpu.start !== 'warm' || times.startMs > longStart * times.totalMs
      ? `started for ${timeText(times.startMs)}${gpu.start === 'warm' ? '' : ` (${gpu.start})`}`
      : '',
    `ran ${timeText(times.runMs)}${runBracket(gpu, run, isQueued ? 1 : ways)}`,
    ...(sloMs === undefined ? [] : [sloText(sloMs, ended)]),
  ];
  return `${capital(parts.filter((part) => part !== '').join(', '))}.${helpText(helpOf(ended))}`;
}

/** A run that has ended, with what its decisions tell. */
interface Ended {
  times: Times;
  gpu: GpuRecord;
  run: RunFacts | undefined;
  sloMs: number | undefined;
  /** Why it was put nowhere before it was placed. */
  waitedFor: string | undefined;
  action: string;
}

function timesOf({ annotations, duration = 0 }: WhiskActivation, { queueMs }: GpuRecord): Times {
  const number = (key: string): number => {
    const value = parameterValue(annotations, key);
    return typeof value === 'number' ? value : 0;
  };
  const [waitMs, initMs] = [number('waitTime'), number('initTime')];
  const startMs = Math.max(0, waitMs - queueMs) + initMs;
  return { queueMs, startMs, runMs: Math.max(0, duration - initMs), totalMs: waitMs + duration };
}

function aheadOf(decisions: readonly DecisionRecord[]): number | undefined {
  return decisions.findLast(({ ahead }) => ahead !== undefined)?.ahead;
}

/** How many ran on the GPU on average, the run itself included; 1: it was alone, or that is not known. */
function waysOf(run: RunFacts | undefined): number {
  return Math.round(1 + (run?.beside ?? []).reduce((sum, { part }) => sum + part, 0));
}

function queueBracket(ahead: number, ways: number): string {
  const facts = [...(ahead === 0 ? [] : [`${ahead} ahead`]), ...(ways > 1 ? [`GPU shared ${ways} ways`] : [])];
  return bracket(facts);
}

const bracket = (facts: readonly string[]): string => (facts.length === 0 ? '' : ` (${facts.join(', ')})`);

/** What is known of the run's speed: no neighbour is blamed where there was none. */
function runBracket({ share, batch = 1 }: GpuRecord, run: RunFacts | undefined, ways: number): string {
  const facts = [
    ...(ways > 1 ? [`GPU shared ${ways} ways`] : []),
    ...(share < 1 ? [`${Math.round(share * 100)} % of the SMs`] : []),
    ...(batch > 1 ? [`in a batch of ${batch}`] : []),
    ...(run === undefined ? [] : [speedText(run)]),
  ];
  return bracket(facts.filter((fact) => fact !== ''));
}

function speedText(run: RunFacts): string {
  const { slowdown, aloneMs, unknownBeside } = run;
  const others = besideText(run);
  if (slowdown === undefined || aloneMs === undefined) return others;
  const times = `${slowdown.toFixed(1)} times its time alone of ${timeText(aloneMs)}`;
  if (others === '') return slowdown < odd ? '' : `alone, ${times}, which no neighbour explains`;
  if (!isExplained(run)) return `${times} ${others}, more than neighbours explain`;
  const than = slowdown < slower ? 'no slower than alone' : `${Math.round((slowdown - 1) * 100)} % slower than alone`;
  return unknownBeside === true ? `${than}, ${others}` : `${than} ${others}`;
}

/** Whether a slowdown is no more than its neighbours can have caused; how much workloads and unknown work cause is not known. */
function isExplained({ slowdown = 1, beside, workloads, unknownBeside }: RunFacts): boolean {
  if (workloads !== undefined || unknownBeside === true) return true;
  return slowdown <= mostByEach * (1 + beside.reduce((sum, { part }) => sum + part, 0));
}

/** Those that were beside a run, most time first; empty: it was alone. */
function besideText({ beside, workloads = 0, unknownBeside }: RunFacts): string {
  const names = [...new Set(beside.map(({ action, namespace }) => (namespace === '' ? action : `\`${action}\``)))];
  const all = [
    ...names.slice(0, mostNamed),
    ...(names.length > mostNamed ? [`${names.length - mostNamed} more`] : []),
    ...(workloads > 0 ? [workloads === 1 ? 'a workload' : `${workloads} workloads`] : []),
    ...(unknownBeside === true ? ['work that is not known'] : []),
  ];
  return all.length === 0 ? '' : `beside ${all.join(' and ')}`;
}

const mostNamed = 3;

function sloText(sloMs: number, ended: Ended): string {
  const { times, run } = ended;
  const leftMs = sloMs - times.totalMs;
  const slo = `SLO ${timeText(sloMs)}`;
  if (leftMs >= 0) return `${slo}: met with ${timeText(leftMs)} to spare`;
  return `${slo}: missed by ${timeText(-leftMs)} because ${causeText(causeOf(sloMs, times, run), ended)}`;
}

type Cause = 'alone' | 'queue' | 'start' | 'neighbours' | 'run';

/** What a run lost to neighbours, ms; 0: nothing, or nothing is known. */
function lostMs({ runMs }: Times, run: RunFacts | undefined): number {
  if (run?.slowdown === undefined || run.slowdown < slower || besideText(run) === '' || !isExplained(run)) return 0;
  return runMs * (1 - 1 / run.slowdown);
}

/** The greatest part of the time that a missed SLO went to, unless the rest of the run takes too long by itself. */
function causeOf(sloMs: number, times: Times, run: RunFacts | undefined): Cause {
  if (run?.aloneMs !== undefined && run.aloneMs > sloMs) return 'alone';
  const lost = lostMs(times, run);
  if (times.runMs - lost > sloMs) return 'run';
  const parts: [Cause, number][] = [
    ['queue', times.queueMs],
    ['start', times.startMs],
    ['neighbours', lost],
  ];
  return parts.reduce((one, other) => (other[1] > one[1] ? other : one), ['run', 0])[0];
}

function causeText(
  cause: Cause,
  { times, gpu: { start }, run, waitedFor }: Pick<Ended, 'times' | 'gpu' | 'run' | 'waitedFor'>,
): string {
  switch (cause) {
    case 'alone':
      return `it takes ${timeText(run?.aloneMs ?? 0)} alone`;
    case 'queue':
      return `it waited ${timeText(times.queueMs)} for a GPU${waitedFor === undefined ? '' : ` (${waitedFor})`}`;
    case 'start':
      return `its start took ${timeText(times.startMs)}${start === 'warm' ? '' : ` (${start})`}`;
    case 'neighbours':
      return `neighbours took ${timeText(lostMs(times, run))} of its time`;
    case 'run':
      return `its run took ${timeText(times.runMs)}${besides(times)}`;
  }
}

/** Wait and start beside a run that is too long by itself, where they are no small parts. */
function besides({ queueMs, startMs, runMs }: Times): string {
  const parts = [
    ...(queueMs > runMs / 2 ? [`its wait ${timeText(queueMs)}`] : []),
    ...(startMs > runMs / 2 ? [`its start ${timeText(startMs)}`] : []),
  ];
  return parts.map((part) => ` and ${part}`).join('');
}

/** What would have helped; undefined: it needed no help, or nothing is known that would have. */
function helpOf({ times, run, sloMs, waitedFor, action }: Ended): string | undefined {
  const isMissed = sloMs !== undefined && times.totalMs > sloMs;
  const waitsLong = sloMs === undefined && times.queueMs > longWait * times.totalMs;
  if (!isMissed && !waitsLong) return undefined;
  switch (isMissed ? causeOf(sloMs, times, run) : 'queue') {
    case 'alone':
      return `an \`sloMs\` above ${timeText(run?.aloneMs ?? 0)}, or a faster GPU`;
    case 'queue':
      return roomHelp(waitedFor);
    case 'start':
      return `an instance ahead of the request (wsk gpu launch ${action})`;
    case 'neighbours':
      return '`isolation: exclusive` in annotation gpu, or a larger `sloMs`';
    case 'run':
      return `an \`sloMs\` above ${timeText(times.runMs)}, or less work in a call`;
  }
}

/** The reason that most alternatives were rejected for; undefined: there are none. */
export function reasonIn(rejected: readonly { reason: string }[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { reason } of rejected) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const [most] = [...counts].sort(([, one], [, other]) => other - one);
  return most?.[0];
}

/** What makes room for work that GPUs had no room for, by the reason of a rejection. */
function roomHelp(reason: string | undefined): string {
  if (reason?.includes('memory') === true || reason === 'too small')
    return 'a smaller `memoryMiB`, or a GPU with more memory';
  if (reason?.startsWith('isolation') === true) return '`isolation: shared` in annotation gpu of both functions';
  if (reason?.includes('one process at a time') === true)
    return 'MPS (gpu.manage.mps), so that functions share the GPU';
  if (reason?.includes('measured') === true)
    return 'more runs, or `sample` in annotation gpu: measured functions share a GPU';
  if (reason === 'it is not free') return 'a policy that shares GPUs (wsk gpu policy set auto), or another GPU';
  return 'another GPU, or a smaller share of one (`mpsPercent` in annotation gpu)';
}

const helpText = (help: string | undefined): string => (help === undefined ? '' : ` What would have helped: ${help}.`);
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** A time, ms, with three significant figures at most. */
function timeText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
}
