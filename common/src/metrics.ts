// The platform's metrics, and the series of each action.
import { Counter, Registry } from 'prom-client';
import { systemClock } from './system/clock.js';
import type { Clock } from './system/clock.js';

/** From a warm run of some hundred microseconds to the longest action, s. */
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

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
class Times {
  private readonly buckets = new Array<number>(secondsBuckets.length).fill(0);
  private sumSeconds = 0;
  private count = 0;

  observe(seconds: number): void {
    this.sumSeconds += seconds;
    this.count++;
    const bucket = secondsBuckets.findIndex((bound) => seconds <= bound);
    if (bucket >= 0) this.buckets[bucket] = (this.buckets[bucket] ?? 0) + 1;
  }

  add({ buckets, sumSeconds, count }: Times): void {
    this.sumSeconds += sumSeconds;
    this.count += count;
    for (const [index, value] of buckets.entries()) this.buckets[index] = (this.buckets[index] ?? 0) + value;
  }

  text(name: string, labels: string): string {
    if (this.count === 0) return '';
    let [text, below] = ['', 0];
    for (const [index, bound] of secondsBuckets.entries()) {
      below += this.buckets[index] ?? 0;
      text += `${name}_bucket{le="${bound}",${labels}} ${below}\n`;
    }
    text += `${name}_bucket{le="+Inf",${labels}} ${this.count}\n`;
    return `${text}${name}_sum{${labels}} ${this.sumSeconds}\n${name}_count{${labels}} ${this.count}\n`;
  }
}

/** What is measured of one action, as one namespace calls it. */
class ActionMeasures {
  activations = 0;
  coldStarts = 0;
  /** By status code. */
  readonly statuses = [0, 0, 0, 0];
  readonly waitTime = new Times();
  readonly initTime = new Times();
  readonly duration = new Times();
  /** Whether it was asked for since this was last looked at. */
  used = true;
  readonly labels: string;
  readonly activationLabels: string;
  /** By family: its text, and how many activations it is of. */
  private readonly texts: { of: number; text: Buffer }[] = [];

  /** `more`: labels of the count of activations beyond those of all. */
  constructor(labels: Labels, more: Labels) {
    this.labels = labelText(labels);
    this.activationLabels = `${this.labels},${labelText(more)}`;
  }

  add(one: ActionMeasures): void {
    this.activations += one.activations;
    this.coldStarts += one.coldStarts;
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

interface Family {
  header: Buffer;
  lines(measures: ActionMeasures): string;
}

function family(type: 'counter' | 'histogram', name: string, help: string, lines: Family['lines']): Family {
  return { header: Buffer.from(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), lines };
}

function times(name: string, help: string, of: (measures: ActionMeasures) => Times): Family {
  return family('histogram', name, help, (one) => of(one).text(name, one.labels));
}

const families: readonly Family[] = [
  family(
    'counter',
    'openwhisk_action_activations_total',
    'Activations',
    (one) => `openwhisk_action_activations_total{${one.activationLabels}} ${one.activations}\n`,
  ),
  family('counter', 'openwhisk_action_coldStarts_total', 'Activations that loaded their code', (one) =>
    one.coldStarts === 0 ? '' : `openwhisk_action_coldStarts_total{${one.labels}} ${one.coldStarts}\n`,
  ),
  family('counter', 'openwhisk_action_status', 'Activations by status', (one) =>
    statusLabels
      .map((status, code) => {
        const value = one.statuses[code] ?? 0;
        return value === 0 ? '' : `openwhisk_action_status{${one.labels},status="${status}"} ${value}\n`;
      })
      .join(''),
  ),
  times('openwhisk_action_waitTime_seconds', 'Time from acceptance to the start of the run', (one) => one.waitTime),
  times('openwhisk_action_initTime_seconds', 'Time to load the code, where it was loaded', (one) => one.initTime),
  times('openwhisk_action_duration_seconds', 'Time of the run, loading included', (one) => one.duration),
];

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
      this.others ??= new ActionMeasures(
        { namespace: other, initiator: other, action: other },
        { kind: other, memory: '0' },
      );
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
}

/** How a run found its container: made for it, ready (`injected`: for one action after the other), or loaded already. */
type StartKind = 'cold' | 'prewarmed' | 'injected' | 'warm';

/** The platform's metrics, under OpenWhisk's names so that its dashboards work unchanged. */
export interface Metrics {
  /** A run began in a container that it found as `start` says. */
  activationStarted(kind: string, start: StartKind): void;
  /** An activation ended with `statusCode` (0 to 3). `initiator`: the calling namespace; default: the action's own. */
  activationEnded(action: MeasuredAction, times: MeasuredTimes, statusCode: number, initiator?: string): void;
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
    const key = `${initiator} ${action.namespace}/${action.name} ${action.kind} ${action.limits.memory}`;
    return actions.of(key, () => {
      const slash = action.namespace.indexOf('/');
      const labels = {
        namespace: slash < 0 ? action.namespace : action.namespace.slice(0, slash),
        initiator,
        action: slash < 0 ? action.name : `${action.namespace.slice(slash + 1)}/${action.name}`,
      };
      return new ActionMeasures(labels, { kind: action.kind, memory: String(action.limits.memory) });
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
    activationEnded(action, times, statusCode, initiator = action.namespace.split('/', 1)[0] ?? '') {
      const measures = measuresOf(action, initiator);
      measures.activations++;
      measures.statuses[statusCode] = (measures.statuses[statusCode] ?? 0) + 1;
      measures.waitTime.observe(times.waitMs / 1000);
      measures.duration.observe((times.endMs - times.startMs) / 1000);
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
  const forced = once(registry, 'gpuwhisk_forced_completions_total', 'Activations whose completion was lost', []);
  const namespaces = new Set<string>();
  const label = (namespace: string): { namespace: string } => {
    if (namespaces.size < maxNamespaces) namespaces.add(namespace);
    return { namespace: namespaces.has(namespace) ? namespace : 'other' };
  };
  return {
    timed: (namespace) => timed.inc(label(namespace)),
    concurrent: (namespace) => concurrent.inc(label(namespace)),
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
