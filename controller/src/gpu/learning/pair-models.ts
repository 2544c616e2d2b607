// Measured pairs, and the models of degradation that were learned from them, by kind of GPU and kinds of victim and neighbour.
import type { Clock } from '@gpuwhisk/common/system/clock';
import { pairModelName } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { PairModel, PairModelKey } from '@gpuwhisk/gpu/predict/pair-degradation';
import { decodePairModel } from '@gpuwhisk/gpu/predict/pair-model-codec';
import type { PairModelDocument } from '@gpuwhisk/gpu/predict/pair-model-codec';
import { learnable, PairSamples } from '@gpuwhisk/gpu/predict/pair-samples';
import type { MeasuredPair, MeasuredSide, PairSamplesState } from '@gpuwhisk/gpu/predict/pair-samples';
import { leastTrainingPairs } from '@gpuwhisk/gpu/predict/pair-training';
import type { PairJudgement, PairTrainingInput, PairTrainingOutput } from '@gpuwhisk/gpu/predict/pair-training';
import { ModelFormatError } from '@gpuwhisk/gpu/predict/slowdown-model';

/** The last training of a kind of pair. */
interface Trained {
  version: number;
  /** Epoch ms. */
  trainedAt: number;
  /** Pairs that were learned from. */
  pairs: number;
  judgement?: PairJudgement;
  /** Absent: it errs no less than figures alone, and is not used. */
  model?: PairModelDocument;
}

/** A kind of pair. */
interface Known {
  key: PairModelKey;
  samples: PairSamples;
  trained?: Trained;
}

/** What is known of a kind of pair, for operators. */
export interface PairModelView extends PairModelKey {
  /** Pairs with features on both sides, and their measurements. */
  pairs: number;
  measurements: number;
  /**
   * `measuring`: fewer pairs than a training takes. `figures`: pairs are predicted by the figures of both sides, as the model
   * errs no less, or was not trained yet. `model`: the model predicts.
   */
  predictedBy: 'measuring' | 'figures' | 'model';
  /** The last training; absent: there was none. Its errors are those on pairs that the model has not seen. */
  version?: number;
  trainedAt?: number;
  trainedPairs?: number;
  errors?: PairJudgement;
}

/** Dependencies of PairModels. */
interface PairModelsParts {
  clock: Pick<Clock, 'now'>;
  /** Called with a changed kind of pair: its measurements, or its last training; undefined: deleted. */
  keepSamples(key: PairModelKey, text: (() => string) | undefined): void;
  keepModel(key: PairModelKey, text: (() => string) | undefined): void;
  /** A model predicts from now on; `isFirst`: its pairs were predicted by their figures before. */
  use(model: PairModel, isFirst: boolean): void;
  /** Pairs are predicted by their figures from now on. */
  withdraw(key: PairModelKey): void;
}

const format = 'gpuwhisk trained pairs';
const formatVersion = 1;

/** Kinds of pairs: four for each kind of GPU. */
const mostKinds = 256;
/** New pairs for the next training, absolute and as a part of those of the last one; and the age at which any change will do, ms. */
const [leastFresh, freshPart, oldMs] = [5, 0.2, 24 * 3_600_000];

const keyOf = ({ gpuType, mode, victim, neighbour }: PairModelKey): PairModelKey => ({
  gpuType,
  mode,
  victim,
  neighbour,
});

/** Measured pairs and their models. */
export class PairModels {
  private readonly kinds = new Map<string, Known>();
  private listener: (key: PairModelKey) => void = () => undefined;

  constructor(private readonly parts: PairModelsParts) {}

  /** Takes a measurement. Returns the reason if it is refused. */
  add(key: PairModelKey, pair: Omit<MeasuredPair, 'at'>): string | undefined {
    const known = this.kindOf(key);
    if (known === undefined) return `there are more than ${mostKinds} kinds of pairs`;
    const { isTaken, refused } = known.samples.add({ ...pair, at: this.parts.clock.now() });
    if (isTaken) {
      this.changed(known);
      this.listener(known.key);
    }
    return refused;
  }

  /** Calls `listener` for every measurement that is taken. */
  onAdded(listener: (key: PairModelKey) => void): void {
    this.listener = listener;
  }

  /** Whether a pair was measured. */
  has(key: PairModelKey, victim: Omit<MeasuredSide, 'features'>, neighbour: Omit<MeasuredSide, 'features'>): boolean {
    return this.kinds.get(pairModelName(key))?.samples.has(victim, neighbour) ?? false;
  }

  /** The kinds of pairs with enough measurements for a first or another training. */
  due(): PairModelKey[] {
    return [...this.kinds.values()].filter((known) => this.isDueOf(known)).map(({ key }) => key);
  }

  /** Whether enough was measured for a first or another training. */
  isDue(key: PairModelKey): boolean {
    const known = this.kinds.get(pairModelName(key));
    return known !== undefined && this.isDueOf(known);
  }

  private isDueOf({ samples, trained }: Known): boolean {
    if (samples.size < leastTrainingPairs) return false;
    if (trained !== undefined) {
      const isFresh = samples.fresh >= Math.max(leastFresh, freshPart * trained.pairs);
      // A training of the future is one of before this clock was set back.
      const isOld = Math.abs(this.parts.clock.now() - trained.trainedAt) >= oldMs;
      if (!isFresh && !(isOld && samples.isChanged)) return false;
    }
    return learnable(samples.samples()) >= leastTrainingPairs;
  }

  /** The input of a training, and the number of new pairs in it; undefined if it is not due. */
  training(key: PairModelKey): { input: PairTrainingInput; fresh: number } | undefined {
    const known = this.kinds.get(pairModelName(key));
    if (known === undefined || !this.isDueOf(known)) return undefined;
    const version = (known.trained?.version ?? 0) + 1;
    const input = { ...known.key, version, seed: version, samples: known.samples.samples() };
    return { input, fresh: known.samples.fresh };
  }

  /**
   * Takes the result of a training. Returns whether its model predicts from now on: only if it errs less than figures alone on
   * pairs that it has not seen. Throws Error for a model of another kind of pair, and ModelFormatError.
   */
  trained({ input, fresh }: { input: PairTrainingInput; fresh: number }, output: PairTrainingOutput): boolean {
    const model = decodePairModel(output.model);
    const isOfKey = pairModelName(model) === pairModelName(input) && model.version === input.version;
    if (!isOfKey) throw new Error('the training returned a model of another kind of pair');
    const known = this.kinds.get(pairModelName(input));
    // An operator has deleted the measurements meanwhile.
    if (known === undefined) return false;
    const { judgement } = output;
    const isUsed = judgement !== undefined && judgement.model.rmsle < judgement.figures.rmsle;
    const wasUsed = known.trained?.model !== undefined;
    known.trained = {
      version: input.version,
      trainedAt: this.parts.clock.now(),
      pairs: input.samples.length,
      ...(judgement && { judgement }),
      ...(isUsed && { model: output.model }),
    };
    known.samples.trained(fresh);
    if (isUsed) this.parts.use(model, !wasUsed);
    else if (wasUsed) this.parts.withdraw(known.key);
    this.changed(known);
    this.parts.keepModel(known.key, () => textOf(known));
    return isUsed;
  }

  /** All kinds of pairs with measurements or a training. */
  views(): PairModelView[] {
    return [...this.kinds.values()].map(({ key, samples, trained }): PairModelView => {
      const { size, measurements } = samples;
      const isEnough = trained !== undefined || learnable(samples.samples()) >= leastTrainingPairs;
      return {
        ...key,
        pairs: size,
        measurements,
        predictedBy: trained?.model !== undefined ? 'model' : isEnough ? 'figures' : 'measuring',
        ...(trained && {
          version: trained.version,
          trainedAt: trained.trainedAt,
          trainedPairs: trained.pairs,
          ...(trained.judgement && { errors: trained.judgement }),
        }),
      };
    });
  }

  /** Numbers of measured pairs, and of models that predict. */
  counts(): { pairs: number; pairModels: number } {
    const all = [...this.kinds.values()];
    return {
      pairs: all.reduce((sum, { samples }) => sum + samples.size, 0),
      pairModels: all.filter(({ trained }) => trained?.model !== undefined).length,
    };
  }

  /** Deletes the pairs of a function, `/namespace/action`. */
  forgetFunction(name: string): void {
    for (const known of this.kinds.values()) if (known.samples.forget(name)) this.changed(known);
  }

  /** Deletes the pairs and models of a kind of GPU, `gpuType/mode`. Returns whether there were any. */
  forgetPlace(place: string): boolean {
    const gone = [...this.kinds].filter(([, { key }]) => `${key.gpuType}/${key.mode}` === place);
    for (const [name, { key, trained }] of gone) {
      this.kinds.delete(name);
      if (trained?.model !== undefined) this.parts.withdraw(key);
      this.parts.keepSamples(key, undefined);
      this.parts.keepModel(key, undefined);
    }
    return gone.length > 0;
  }

  /** Takes stored measurements and, if `isChanged`, adds those in memory to them. Throws RangeError. */
  restoreSamples(text: string, isChanged: boolean): void {
    const { state, ...rest } = JSON.parse(text) as PairModelKey & { state: PairSamplesState };
    const samples = new PairSamples(state);
    const known = this.kindOf(rest);
    if (known === undefined) return;
    if (isChanged) samples.addAll(known.samples.state());
    known.samples = samples;
  }

  /** Takes a stored training. Throws ModelFormatError for one of another format or version. */
  restoreModel(text: string): void {
    const stored = JSON.parse(text) as PairModelKey & Trained & { format?: string; formatVersion?: number };
    if (stored.format !== format || stored.formatVersion !== formatVersion) {
      throw new ModelFormatError(
        `its format is '${String(stored.format)}', version ${String(stored.formatVersion)}, instead of '${format}', version ${formatVersion}`,
      );
    }
    const { version, trainedAt, pairs, judgement, model: document } = stored;
    if (![version, trainedAt, pairs].every((value) => Number.isFinite(value))) {
      throw new ModelFormatError('its version, time or number of pairs is missing');
    }
    const model = document && decodePairModel(document);
    const known = this.kindOf(stored);
    if (known === undefined || (known.trained?.version ?? -Infinity) > version) return;
    known.trained = {
      ...{ version, trainedAt, pairs },
      ...(judgement && { judgement }),
      ...(document && { model: document }),
    };
    if (model !== undefined) this.parts.use(model, false);
    else this.parts.withdraw(known.key);
  }

  private changed(known: Known): void {
    this.parts.keepSamples(known.key, () => JSON.stringify({ ...known.key, state: known.samples.state() }));
  }

  private kindOf(key: PairModelKey): Known | undefined {
    const name = pairModelName(key);
    const found = this.kinds.get(name);
    if (found !== undefined || this.kinds.size >= mostKinds) return found;
    const made = { key: keyOf(key), samples: new PairSamples() };
    this.kinds.set(name, made);
    return made;
  }
}

const textOf = ({ key, trained }: Known): string => JSON.stringify({ format, formatVersion, ...key, ...trained });
