import { Counter, Registry } from 'prom-client';
import { ActionMeasures, ActionMetrics } from './action-metrics.js';
import { systemClock } from './system/clock.js';
import type { Clock } from './system/clock.js';

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
