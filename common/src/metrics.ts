import { Counter, Histogram, Registry } from 'prom-client';

/** The action that an activation ran, as far as metrics name it. */
export interface MeasuredAction {
  /** `ns` or `ns/pkg`. */
  namespace: string;
  name: string;
  kind: string;
  limits: { memory: number };
}

/** When an activation ran; epoch ms and ms. `initMs` is set exactly when code was loaded in this run. */
export interface MeasuredTimes {
  startMs: number;
  endMs: number;
  waitMs: number;
  initMs?: number | undefined;
}

/** How a run found its container: new, from a stem cell, or loaded already. */
export type StartKind = 'cold' | 'prewarmed' | 'warm';

/** The platform's metrics, under OpenWhisk's names so that its dashboards work unchanged. */
export interface Metrics {
  /** A run began in a container that it found as `start` says. */
  activationStarted(kind: string, start: StartKind): void;
  /** An activation ended with `statusCode` (0 to 3). `initiator`: the calling namespace; default: the action's own. */
  activationEnded(action: MeasuredAction, times: MeasuredTimes, statusCode: number, initiator?: string): void;
  /** The Prometheus text format. */
  render(): Promise<string>;
  /** Content type of what render gives. */
  readonly contentType: string;
  /** For metrics of other parts. */
  readonly registry: Registry;
}

/** OpenWhisk's metric labels of the status codes. */
const statusLabels = ['success', 'application_error', 'action_developer_error', 'whisk_internal_error'] as const;

/** From a warm run of some hundred microseconds to the longest action. */
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Actions whose series are kept; the longest unused one's are dropped beyond. */
const maxMeasuredActions = 5000;

interface ActionSeries {
  activations: Counter.Internal;
  coldStarts: Counter.Internal;
  statuses: Counter.Internal[];
  waitTime: Histogram.Internal<string>;
  initTime: Histogram.Internal<string>;
  duration: Histogram.Internal<string>;
  remove(): void;
}

/** Creates the metrics in a registry of their own. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const actionLabels = ['namespace', 'initiator', 'action'] as const;
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name, help, labelNames: [...labelNames], registers });
  const histogram = (name: string, help: string): Histogram<(typeof actionLabels)[number]> =>
    new Histogram({ name, help, labelNames: [...actionLabels], buckets: secondsBuckets, registers });

  const activations = counter('openwhisk_action_activations_total', 'Activations', [...actionLabels, 'kind', 'memory']);
  const coldStarts = counter('openwhisk_action_coldStarts_total', 'Activations that loaded their code', actionLabels);
  const statuses = counter('openwhisk_action_status', 'Activations by status', [...actionLabels, 'status']);
  const waitTime = histogram('openwhisk_action_waitTime_seconds', 'Time from acceptance to the start of the run');
  const initTime = histogram('openwhisk_action_initTime_seconds', 'Time to load the code, where it was loaded');
  const duration = histogram('openwhisk_action_duration_seconds', 'Time of the run, loading included');
  const starts = counter('gpuwhisk_activation_starts_total', 'Runs by the state of their container', ['kind', 'start']);

  const series = new Map<string, ActionSeries>();
  const startSeries = new Map<string, Counter.Internal>();

  function seriesOf(action: MeasuredAction, initiator: string): ActionSeries {
    const key = `${initiator} ${action.namespace}/${action.name} ${action.kind} ${action.limits.memory}`;
    const known = series.get(key);
    if (known !== undefined) return known;
    if (series.size >= maxMeasuredActions) {
      const [oldestKey, oldest] = series.entries().next().value ?? [];
      oldest?.remove();
      if (oldestKey !== undefined) series.delete(oldestKey);
    }
    const slash = action.namespace.indexOf('/');
    const labels = {
      namespace: slash < 0 ? action.namespace : action.namespace.slice(0, slash),
      initiator,
      action: slash < 0 ? action.name : `${action.namespace.slice(slash + 1)}/${action.name}`,
    };
    const activationLabels = { ...labels, kind: action.kind, memory: String(action.limits.memory) };
    const created: ActionSeries = {
      activations: activations.labels(activationLabels),
      coldStarts: coldStarts.labels(labels),
      statuses: statusLabels.map((status) => statuses.labels({ ...labels, status })),
      waitTime: waitTime.labels(labels),
      initTime: initTime.labels(labels),
      duration: duration.labels(labels),
      remove() {
        activations.remove(activationLabels);
        for (const status of statusLabels) statuses.remove({ ...labels, status });
        for (const metric of [coldStarts, waitTime, initTime, duration]) metric.remove(labels);
      },
    };
    series.set(key, created);
    return created;
  }

  return {
    registry,
    contentType: registry.contentType,
    render: () => registry.metrics(),
    activationStarted(kind, start) {
      const key = `${kind} ${start}`;
      let child = startSeries.get(key);
      if (child === undefined) {
        child = starts.labels({ kind, start });
        startSeries.set(key, child);
      }
      child.inc();
    },
    activationEnded(action, times, statusCode, initiator = action.namespace.split('/', 1)[0] ?? '') {
      const measured = seriesOf(action, initiator);
      measured.activations.inc();
      measured.statuses[statusCode]?.inc();
      measured.waitTime.observe(times.waitMs / 1000);
      measured.duration.observe((times.endMs - times.startMs) / 1000);
      if (times.initMs !== undefined) {
        measured.coldStarts.inc();
        measured.initTime.observe(times.initMs / 1000);
      }
    },
  };
}
