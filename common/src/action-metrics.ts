import type { Metric, Registry } from 'prom-client';

/** From a warm run of some hundred microseconds to the longest action, s. */
const secondsBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** OpenWhisk's metric labels of the status codes. */
const statusLabels = ['success', 'application_error', 'action_developer_error', 'whisk_internal_error'] as const;

/** Actions whose series are kept; the longest unused one's are dropped beyond. */
const maxMeasuredActions = 5000;

type Labels = Record<string, string | number>;

interface Sample {
  metricName?: string;
  labels: Labels;
  value: number;
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

  *samples(name: string, labels: Labels): Iterable<Sample> {
    if (this.count === 0) return;
    let below = 0;
    for (const [index, bound] of secondsBuckets.entries()) {
      below += this.buckets[index] ?? 0;
      yield { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: below };
    }
    yield { metricName: `${name}_bucket`, labels: { le: '+Inf', ...labels }, value: this.count };
    yield { metricName: `${name}_sum`, labels, value: this.sumSeconds };
    yield { metricName: `${name}_count`, labels, value: this.count };
  }
}

/** What is measured of one action, as one namespace calls it. */
export class ActionMeasures {
  activations = 0;
  coldStarts = 0;
  /** By status code. */
  readonly statuses = [0, 0, 0, 0];
  readonly waitTime = new Times();
  readonly initTime = new Times();
  readonly duration = new Times();

  constructor(
    readonly labels: Labels,
    readonly activationLabels: Labels,
  ) {}
}

/**
 * The metrics of actions. They are added up here and shown through prom-client's registry: prom-client's own children
 * look their labels up on every call, which cost a twentieth of the processor time of a warm invocation.
 */
export class ActionMetrics {
  private readonly measured = new Map<string, ActionMeasures>();

  constructor(registry: Registry) {
    const show = (
      type: 'counter' | 'histogram',
      name: string,
      help: string,
      samples: (measures: ActionMeasures) => Iterable<Sample>,
    ): void => {
      const get = () => ({ name, help, type, values: [...this.measured.values()].flatMap((one) => [...samples(one)]) });
      // The registry asks a metric for no more than this.
      registry.registerMetric({ name, help, type, get } as unknown as Metric);
    };
    show('counter', 'openwhisk_action_activations_total', 'Activations', (one) => [
      { labels: one.activationLabels, value: one.activations },
    ]);
    show('counter', 'openwhisk_action_coldStarts_total', 'Activations that loaded their code', (one) =>
      one.coldStarts === 0 ? [] : [{ labels: one.labels, value: one.coldStarts }],
    );
    show('counter', 'openwhisk_action_status', 'Activations by status', (one) =>
      statusLabels.flatMap((status, code) => {
        const value = one.statuses[code] ?? 0;
        return value === 0 ? [] : [{ labels: { ...one.labels, status }, value }];
      }),
    );
    const times = (name: string, help: string, of: (measures: ActionMeasures) => Times): void =>
      show('histogram', name, help, (one) => of(one).samples(name, one.labels));
    times(
      'openwhisk_action_waitTime_seconds',
      'Time from acceptance to the start of the run',
      ({ waitTime }) => waitTime,
    );
    times(
      'openwhisk_action_initTime_seconds',
      'Time to load the code, where it was loaded',
      ({ initTime }) => initTime,
    );
    times('openwhisk_action_duration_seconds', 'Time of the run, loading included', ({ duration }) => duration);
  }

  /** The measures kept under `key`; `make` begins new ones. */
  of(key: string, make: () => ActionMeasures): ActionMeasures {
    const known = this.measured.get(key);
    if (known !== undefined) return known;
    if (this.measured.size >= maxMeasuredActions) {
      const oldest = this.measured.keys().next();
      if (!oldest.done) this.measured.delete(oldest.value);
    }
    const measures = make();
    this.measured.set(key, measures);
    return measures;
  }
}
