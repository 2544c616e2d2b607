import type { Random } from '@gpuwhisk/common/system/random';
import type { SlowdownSample, TrainingSetState } from '@gpuwhisk/gpu/predict/samples';
import { modelName } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { ModelKey } from '@gpuwhisk/gpu/predict/slowdown-model';
import { TrainingSet } from '@gpuwhisk/gpu/predict/samples';

/** Measured runs that predictors are learned from, by the kind of GPU. */
export class MeasuredRuns {
  private readonly byName = new Map<string, { key: ModelKey; set: TrainingSet }>();
  private listener: (key: ModelKey) => void = () => undefined;

  /** `keep` is told of what has changed, and is to write `text()`. */
  constructor(
    private readonly random: Random,
    private readonly keep: (key: ModelKey, text: () => string) => void,
  ) {}

  /** Keeps a run; returns why it is refused, if it is. */
  add(key: ModelKey, sample: SlowdownSample): string | undefined {
    const refused = this.of(key).add(sample);
    if (refused !== undefined) return refused;
    this.changed(key);
    this.listener(key);
    return undefined;
  }

  /** Has `listener` told of every run that is kept. */
  onAdded(listener: (key: ModelKey) => void): void {
    this.listener = listener;
  }

  /** Kinds of GPUs of which there are any. */
  kinds(): ModelKey[] {
    return Array.from(this.byName.values(), ({ key }) => key);
  }

  /** Those of a kind of GPU. */
  of({ gpuType, mode }: ModelKey): TrainingSet {
    const key = { gpuType, mode };
    const known = this.byName.get(modelName(key));
    if (known !== undefined) return known.set;
    const set = new TrainingSet(this.random);
    this.byName.set(modelName(key), { key, set });
    return set;
  }

  /** Those of a kind of GPU have changed. */
  changed({ gpuType, mode }: ModelKey): void {
    const key = { gpuType, mode };
    this.keep(key, () => JSON.stringify({ ...key, state: this.of(key).state() }));
  }

  /** Takes up what an earlier life has kept; where there is more since (`isChanged`), both count. */
  restore(text: string, isChanged: boolean): void {
    const { gpuType, mode, state } = JSON.parse(text) as ModelKey & { state: TrainingSetState };
    const key = { gpuType, mode };
    const set = new TrainingSet(this.random, state);
    const since = this.byName.get(modelName(key))?.set;
    if (isChanged && since !== undefined) set.addAll(since.state());
    this.byName.set(modelName(key), { key, set });
  }

  /** Forgets those of a kind of GPU, `gpuType/mode`; returns whether there were any. */
  forget(name: string): boolean {
    return this.byName.delete(name);
  }
}
