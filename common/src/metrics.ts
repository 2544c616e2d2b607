// The platform's metrics, and the series of each action.
import { Counter, Registry } from 'prom-client';
import { systemClock } from './system/clock.js';
import { ActivationStatus, userStatusCode } from './entities/activation.js';
import type { ActivationResponse } from './entities/activation.js';
import type { Clock } from './system/clock.js';

/** From a warm run of some hundred microseconds to the longest action, s. */
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Up to the longest result, bytes. */
const bytesBuckets = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/** OpenWhisk's names of a container's state before a run. */
const containerStates = ['cold', 'prewarmed', 'warmed'] as const;
/** The place of a state among `containerStates`. */
const stateOf: Readonly<Record<StartKind, number>> = { cold: 0, prewarmed: 1, injected: 1, warm: 2 };
/** Status codes of one action's results that are counted apart; further ones are counted as `other`. */
const maxStatusCodes = 32;
/** Versions of one action with another kind or memory whose activations are counted apart; the oldest go. */
const maxVariants = 16;

/** OpenWhisk's metric labels of the status codes. */
const statusLabels = ['success', 'application_error', 'action_developer_error', 'whisk_internal_error'] as const;

/** Actions whose series are kept apart; those that were not used for longest are added up as `(other)` beyond. */
const maxMeasuredActions = 500;
/** No entity has such a name. */
const other = '(other)';

type Labels = Readonly<Record<string, string>>;

/** `name="value",...` as the text format has it. */
function labelText(labels: Labels): string {
  const escaped = (value: string): string =>
    value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"');
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escaped(value)}"`)
    .join(',');
}

/** A histogram of one action. */
class Observations {
  private readonly buckets: number[];
  private sum = 0;
  private count = 0;

  /** `bounds`: upper bounds of the buckets, ascending. */
  constructor(private readonly bounds: readonly number[]) {
    this.buckets = new Array<number>(bounds.length).fill(0);
  }

  observe(value: number): void {
    this.sum += value;
    this.count++;
    const bucket = this.bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
  }

  add({ buckets, sum, count }: Observations): void {
    this.sum += sum;
    this.count += count;
    for (const [index, value] of buckets.entries()) this.buckets[index] = (this.buckets[index] ?? 0) + value;
  }

  text(name: string, labels: string): string {
    if (this.count === 0) return '';
    let [text, below] = ['', 0];
    for (const [index, bound] of this.bounds.entries()) {
      below += this.buckets[index] ?? 0;
      text += `${name}_bucket{le="${bound}",${labels}} ${below}\n`;
    }
    text += `${name}_bucket{le="+Inf",${labels}} ${this.count}\n`;
    return `${text}${name}_sum{${labels}} ${this.sum}\n${name}_count{${labels}} ${this.count}\n`;
  }
}

/** What is measured of one action, as one namespace calls it. */
class ActionMeasures {
  activations = 0;
  coldStarts = 0;
  /** By status code. */
  readonly statuses = [0, 0, 0, 0];
  /** By the place in `containerStates`. */
  readonly starts = [0, 0, 0];
  /** Activations with an SLO that met it, and that missed it. */
  slo = { met: 0, missed: 0 };
  /** By the status code that results name. */
  readonly statusCodes = new Map<string, number>();
  readonly waitTime = new Observations(secondsBuckets);
  readonly initTime = new Observations(secondsBuckets);
  readonly duration = new Observations(secondsBuckets);
  readonly responseBytes = new Observations(bytesBuckets);
  /** Activations by kind and memory, which an update of the action changes; the last one is in force. */
  private variants: Variant[] = [];
  /** Whether it was asked for since this was last looked at. */
  used = true;
  readonly labels: string;
  /** By family: its text, and how many activations it is of. */
  private readonly texts: { of: number; text: Buffer }[] = [];

  constructor(labels: Labels) {
    this.labels = labelText(labels);
  }

  /** Counts activations of a kind with so much memory, MiB. */
  countOf(kind: string, memory: number, count = 1): void {
    this.activations += count;
    const last = this.variants.at(-1);
    if (last?.kind === kind && last.memory === memory) {
      last.count += count;
      return;
    }
    const known = this.variants.find((one) => one.kind === kind && one.memory === memory);
    const variant = known ?? { kind, memory, count: 0, labels: labelText({ kind, memory: String(memory) }) };
    variant.count += count;
    this.variants = [...this.variants.filter((one) => one !== variant), variant].slice(-maxVariants);
  }

  countCode(code: string, count = 1): void {
    const name = this.statusCodes.has(code) || this.statusCodes.size < maxStatusCodes ? code : 'other';
    this.statusCodes.set(name, (this.statusCodes.get(name) ?? 0) + count);
  }

  activationLines(name: string): string {
    return this.variants.map(({ labels, count }) => `${name}{${this.labels},${labels}} ${count}\n`).join('');
  }

  /** Of the version that ran last, MiB. */
  get memory(): number {
    return this.variants.at(-1)?.memory ?? 0;
  }

  add(one: ActionMeasures): void {
    this.countOf(other, 0, one.activations);
    this.coldStarts += one.coldStarts;
    this.slo = { met: this.slo.met + one.slo.met, missed: this.slo.missed + one.slo.missed };
    for (const [state, count] of one.starts.entries()) this.starts[state] = (this.starts[state] ?? 0) + count;
    for (const [code, count] of one.statusCodes) this.countCode(code, count);
    this.responseBytes.add(one.responseBytes);
    for (const [code, count] of one.statuses.entries()) this.statuses[code] = (this.statuses[code] ?? 0) + count;
    this.waitTime.add(one.waitTime);
    this.initTime.add(one.initTime);
    this.duration.add(one.duration);
  }

  /** Its lines in a family; written again only if there were activations since. */
  textOf(family: number): Buffer {
    const known = this.texts[family];
    if (known?.of === this.activations) return known.text;
    const text = Buffer.from(families[family]?.lines(this) ?? '');
    this.texts[family] = { of: this.activations, text };
    return text;
  }
}

interface Variant {
  kind: string;
  memory: number;
  count: number;
  labels: string;
}

/** A metric as operators see it. */
export interface MetricDescription {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  help: string;
  labels: readonly string[];
}

interface Family extends MetricDescription {
  header: Buffer;
  lines(measures: ActionMeasures): string;
}

const actionLabels = ['namespace', 'initiator', 'action'];

function family(
  type: MetricDescription['type'],
  name: string,
  help: string,
  lines: Family['lines'],
  more: readonly string[] = [],
): Family {
  const header = Buffer.from(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`);
  return { name, type, help, labels: [...actionLabels, ...more], header, lines };
}

function histogram(name: string, help: string, of: (measures: ActionMeasures) => Observations): Family {
  return family('histogram', name, help, (one) => of(one).text(name, one.labels));
}

/** Counts by the value of one more label; values that were not counted have no line. */
function counts(
  name: string,
  help: string,
  label: string,
  of: (measures: ActionMeasures) => Iterable<readonly [string, number]>,
): Family {
  const lines = (one: ActionMeasures): string =>
    [...of(one)]
      .map(([value, count]) => (count === 0 ? '' : `${name}{${one.labels},${label}="${value}"} ${count}\n`))
      .join('');
  return family('counter', name, help, lines, [label]);
}

const activations = 'openwhisk_action_activations_total';
const families: readonly Family[] = [
  family('counter', activations, 'Activations', (one) => one.activationLines(activations), ['kind', 'memory']),
  family('counter', 'openwhisk_action_coldStarts_total', 'Activations that loaded their code', (one) =>
    one.coldStarts === 0 ? '' : `openwhisk_action_coldStarts_total{${one.labels}} ${one.coldStarts}\n`,
  ),
  counts('openwhisk_action_status', 'Activations by status', 'status', ({ statuses }) =>
    statusLabels.map((status, code) => [status, statuses[code] ?? 0] as const),
  ),
  counts(
    'openwhisk_action_status_code',
    'Activations by the HTTP status that the result names',
    'status_code',
    ({ statusCodes }) => statusCodes,
  ),
  family('gauge', 'openwhisk_action_memory', 'Memory limit of the action, MiB', (one) =>
    one.memory === 0 ? '' : `openwhisk_action_memory{${one.labels}} ${one.memory}\n`,
  ),
  histogram('openwhisk_action_waitTime_seconds', 'Time from acceptance to the start of the run', (one) => one.waitTime),
  histogram('openwhisk_action_initTime_seconds', 'Time to load the code, where it was loaded', (one) => one.initTime),
  histogram('openwhisk_action_duration_seconds', 'Time of the run, loading included', (one) => one.duration),
  histogram('openwhisk_action_response_size_bytes', 'Size of the result', (one) => one.responseBytes),
  counts(
    'counter_invoker_containerStart_counter_total',
    'Runs by the state of their container: cold, prewarmed, warmed',
    'containerState',
    ({ starts }) => containerStates.map((state, at) => [state, starts[at] ?? 0] as const),
  ),
  counts(
    'gpuwhisk_action_slo_total',
    'Activations with an SLO: met, or missed, which those that fail by an error of the platform do too',
    'outcome',
    ({ slo }) => Object.entries(slo),
  ),
];

/** The metrics that have series for each action. */
export const actionMetrics: readonly MetricDescription[] = families;

/**
 * The metrics of actions. They are added up here, and not by prom-client: its children look their labels up on every call,
 * which cost a twentieth of the processor time of a warm invocation, and it writes all of them at once.
 */
class ActionMetrics {
  private readonly measured = new Map<string, ActionMeasures>();
  private others: ActionMeasures | undefined;

  /** The text format of all, in pieces of one action at most, so that others can run between them. */
  *pieces(): Iterable<Buffer> {
    const all = [...this.measured.values()];
    if (this.others !== undefined) all.push(this.others);
    for (const [index, { header }] of families.entries()) {
      yield header;
      for (const one of all) yield one.textOf(index);
      yield lineEnd;
    }
  }

  /** The measures kept under `key`; `make` begins new ones. */
  of(key: string, make: () => ActionMeasures): ActionMeasures {
    const known = this.measured.get(key);
    if (known !== undefined) {
      known.used = true;
      return known;
    }
    if (this.measured.size >= maxMeasuredActions) this.dropOne();
    const measures = make();
    this.measured.set(key, measures);
    return measures;
  }

  /** The first in the circle that was not used since it was last passed by. */
  private dropOne(): void {
    for (const [key, one] of this.measured) {
      this.measured.delete(key);
      if (one.used) {
        one.used = false;
        this.measured.set(key, one);
        continue;
      }
      this.others ??= new ActionMeasures({ namespace: other, initiator: other, action: other });
      this.others.add(one);
      return;
    }
  }
}

const lineEnd = Buffer.from('\n');

/** The action that an activation ran, as far as metrics name it. */
interface MeasuredAction {
  /** `ns` or `ns/pkg`. */
  namespace: string;
  name: string;
  kind: string;
  limits: { memory: number };
}

/** When an activation ran; epoch ms and ms. `initMs` is set exactly when code was loaded in this run. */
interface MeasuredTimes {
  startMs: number;
  endMs: number;
  waitMs: number;
  initMs?: number | undefined;
  /** State of the container, if the run got one: before it loaded the code, or with the code loaded. */
  start?: StartKind;
  found?: StartKind;
}

/** How a run found its container: made for it, ready (`injected`: for one action after the other), or loaded already. */
type StartKind = 'cold' | 'prewarmed' | 'injected' | 'warm';

/** The platform's metrics, under OpenWhisk's names so that its dashboards work unchanged. */
export interface Metrics {
  /** A run began in a container that it found as `start` says. */
  activationStarted(kind: string, start: StartKind): void;
  /**
   * An activation ended. `initiator`: the calling namespace; default: the action's own. `sloMs`: from acceptance to result;
   * absent: it has no SLO.
   */
  activationEnded(
    action: MeasuredAction,
    times: MeasuredTimes,
    response: ActivationResponse,
    initiator?: string,
    sloMs?: number,
  ): void;
  /** The Prometheus text format. It is written in turns of a millisecond; several that ask at once get the same. */
  render(): Promise<Buffer>;
  /** Content type of what render gives. */
  readonly contentType: string;
  /** For metrics of other parts. */
  readonly registry: Registry;
}

/** After which writing makes way for others, ms. */
const turnMs = 1;

/** Creates the metrics in a registry of their own. */
export function createMetrics(clock: Pick<Clock, 'monotonicMs' | 'defer'> = systemClock): Metrics {
  const registry = new Registry();
  const actions = new ActionMetrics();
  const starts = new Counter({
    name: 'gpuwhisk_activation_starts_total',
    help: 'Runs by the state of their container',
    labelNames: ['kind', 'start'],
    registers: [registry],
  });
  /** Starts that are not in the counter yet. */
  const newStarts = new Map<string, { kind: string; start: StartKind; count: number }>();

  function measuresOf(action: MeasuredAction, initiator: string): ActionMeasures {
    const key = `${initiator} ${action.namespace}/${action.name}`;
    return actions.of(key, () => {
      const slash = action.namespace.indexOf('/');
      return new ActionMeasures({
        namespace: slash < 0 ? action.namespace : action.namespace.slice(0, slash),
        initiator,
        action: slash < 0 ? action.name : `${action.namespace.slice(slash + 1)}/${action.name}`,
      });
    });
  }

  async function render(): Promise<Buffer> {
    for (const { kind, start, count } of newStarts.values()) starts.inc({ kind, start }, count);
    newStarts.clear();
    const pieces: Buffer[] = [];
    let sinceMs = clock.monotonicMs();
    for (const piece of actions.pieces()) {
      pieces.push(piece);
      if (clock.monotonicMs() - sinceMs < turnMs) continue;
      await new Promise<void>((resolve) => clock.defer(resolve));
      sinceMs = clock.monotonicMs();
    }
    pieces.push(Buffer.from(await registry.metrics()));
    return Buffer.concat(pieces);
  }
  let rendering: Promise<Buffer> | undefined;

  return {
    registry,
    contentType: registry.contentType,
    render: () => (rendering ??= render().finally(() => (rendering = undefined))),
    activationStarted(kind, start) {
      const key = `${kind} ${start}`;
      const counted = newStarts.get(key);
      if (counted === undefined) newStarts.set(key, { kind, start, count: 1 });
      else counted.count++;
    },
    activationEnded(action, times, response, initiator = action.namespace.split('/', 1)[0] ?? '', sloMs) {
      const measures = measuresOf(action, initiator);
      const { statusCode, size, result } = response;
      const durationMs = times.endMs - times.startMs;
      measures.countOf(action.kind, action.limits.memory);
      measures.statuses[statusCode] = (measures.statuses[statusCode] ?? 0) + 1;
      measures.waitTime.observe(times.waitMs / 1000);
      measures.duration.observe(durationMs / 1000);
      if (size !== undefined) measures.responseBytes.observe(size);
      const code = userStatusCode(result);
      if (code !== undefined) measures.countCode(String(code));
      const found = times.start ?? times.found;
      if (found !== undefined) measures.starts[stateOf[found]] = (measures.starts[stateOf[found]] ?? 0) + 1;
      if (sloMs !== undefined) {
        const isMet = times.waitMs + durationMs <= sloMs && statusCode !== ActivationStatus.whiskError;
        measures.slo[isMet ? 'met' : 'missed']++;
      }
      if (times.initMs === undefined) return;
      measures.coldStarts++;
      measures.initTime.observe(times.initMs / 1000);
    },
  };
}

/** Namespaces whose refusals are counted apart; those of further ones count as `other`. */
const maxNamespaces = 1000;

/** Counts refusals, under the names that OpenWhisk's user-events service gives them. */
export interface ThrottleMetrics {
  /** Refused for its rate of invocations or fires. */
  timed(namespace: string): void;
  /** Refused for its invocations in flight. */
  concurrent(namespace: string): void;
  /** Refused for what it has stored. */
  stored(namespace: string): void;
  /** A completion did not come in time. */
  forcedCompletion(): void;
}

function once(registry: Registry, name: string, help: string, labelNames: string[]): Counter {
  const known = registry.getSingleMetric(name);
  if (known !== undefined) return known as Counter;
  return new Counter({ name, help, labelNames, registers: [registry] });
}

/** The metrics of throttles in `registry`; those of a registry are the same however often they are asked for. */
export function throttleMetrics(registry: Registry): ThrottleMetrics {
  const help = 'Requests that a namespace was refused for its';
  const timed = once(registry, 'openwhisk_action_limit_timed_total', `${help} limit a minute`, ['namespace']);
  const concurrent = once(registry, 'openwhisk_action_limit_concurrent_total', `${help} limit in flight`, [
    'namespace',
  ]);
  const stored = once(registry, 'gpuwhisk_stored_limit_total', `${help} limit of stored bytes`, ['namespace']);
  const forced = once(registry, 'gpuwhisk_forced_completions_total', 'Activations whose completion was lost', []);
  const namespaces = new Set<string>();
  const label = (namespace: string): { namespace: string } => {
    if (namespaces.size < maxNamespaces) namespaces.add(namespace);
    return { namespace: namespaces.has(namespace) ? namespace : 'other' };
  };
  return {
    timed: (namespace) => timed.inc(label(namespace)),
    concurrent: (namespace) => concurrent.inc(label(namespace)),
    stored: (namespace) => stored.inc(label(namespace)),
    forcedCompletion: () => forced.inc(),
  };
}

/** Counts what was skipped of what came on a bus. */
export interface BusMetrics {
  /** A message is no JSON object, or not what its topic is for. */
  malformed(topic: string): void;
  /** Messages were gone before they were consumed. */
  lost(topic: string, count: number): void;
}

/** The metrics of a bus in `registry`; those of a registry are the same however often they are asked for. */
export function busMetrics(registry: Registry): BusMetrics {
  const counter = (name: string, help: string): Counter =>
    (registry.getSingleMetric(name) as Counter | undefined) ??
    new Counter({ name, help, labelNames: ['topic'], registers: [registry] });
  const malformed = counter('gpuwhisk_bus_malformed_messages_total', 'Messages that could not be read');
  const lost = counter('gpuwhisk_bus_lost_messages_total', 'Messages that brokers deleted before they were consumed');
  return {
    malformed: (topic) => malformed.inc({ topic }),
    lost: (topic, count) => lost.inc({ topic }, count),
  };
}

/** Returns a function that counts spans by whether the collector of traces took them, in `registry`. */
export function traceMetrics(registry: Registry): (outcome: 'exported' | 'failed', spans: number) => void {
  const help = 'Spans that the collector of traces has taken, and those that it has not';
  const counter = once(registry, 'gpuwhisk_trace_spans_total', help, ['outcome']);
  return (outcome, spans) => counter.inc({ outcome }, spans);
}
