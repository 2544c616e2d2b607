import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { Task } from '@gpuwhisk/gpu/policies/policy';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';

/** What is known of one version of a function with one size of batch. Times in ms. */
interface Profile {
  /** Times that warm runs took, without what neighbours cost as far as that was predicted; the last ones. */
  soloMs: number[];
  /** What cold runs took beyond that, the last ones. */
  startMs: number[];
}

/** Runs that count. */
const keptRuns = 16;
/** Functions that are remembered; the one that was learned first is forgotten. */
const maxFunctions = 10_000;

const median = (values: readonly number[]): number | undefined => values.toSorted((a, b) => a - b)[values.length >> 1];

/** What functions were seen to need: from their runs, and from what the agents tell of their processes. */
export class GpuProfiles {
  private readonly runs = new Map<string, Profile>();
  private readonly features = new Map<string, WorkloadFeatures>();

  /** What is known of a function, as fields of a task. */
  of(one: Pick<Task, 'function' | 'version' | 'batch'>): Pick<Task, 'soloMs' | 'startMs' | 'features'> {
    const run = this.runs.get(keyOf(one));
    const features = this.features.get(one.function);
    const soloMs = run && median(run.soloMs);
    const startMs = run && median(run.startMs);
    return {
      ...(soloMs !== undefined && { soloMs }),
      ...(startMs !== undefined && { startMs }),
      ...(features !== undefined && { features }),
    };
  }

  /** A run has ended. `slowdown`: what its neighbours and its share are predicted to have cost. */
  ran(task: Task, tookMs: number, slowdown: number, isWarm: boolean): void {
    const key = keyOf(task);
    const known = this.runs.get(key) ?? { soloMs: [], startMs: [] };
    const soloMs = median(known.soloMs);
    if (isWarm) keep(known.soloMs, tookMs / slowdown);
    // What a cold run takes for itself is known from warm ones only.
    else if (soloMs !== undefined) keep(known.startMs, Math.max(0, tookMs - soloMs * slowdown));
    bounded(this.runs, key, known);
  }

  /** The SMs that a function's processes were seen to take, at most. Of memory and cache the agents do not tell. */
  seen({ residents, status }: NodeStatus): void {
    const actions = new Map(residents.map(({ container, action }) => [container, action]));
    for (const { container = '', utilisation } of status.flatMap(({ processes }) => processes)) {
      const action = actions.get(container);
      if (action === undefined || utilisation === undefined || !(utilisation > 0)) continue;
      const known = this.features.get(action);
      if (known !== undefined && known.smUtil >= utilisation) continue;
      bounded(this.features, action, { smUtil: Math.min(1, utilisation), dramUtil: 0, l2Util: 0 });
    }
  }
}

const keyOf = ({ function: name, version, batch }: Pick<Task, 'function' | 'version' | 'batch'>): string =>
  `${name}@${version} ${batch}`;

function keep(values: number[], value: number): void {
  values.push(value);
  if (values.length > keptRuns) values.shift();
}

function bounded<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.set(key, value);
  const [first] = map.keys();
  if (map.size > maxFunctions && first !== undefined) map.delete(first);
}
