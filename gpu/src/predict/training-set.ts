import type { Random } from '@gpuwhisk/common/system/random';
import { SampleReservoir, type ReservoirState, type SlowdownSample } from './samples.js';

/** What a training set holds, to be stored. */
export interface TrainingSetState {
  training: ReservoirState;
  heldOut: ReservoirState;
  /** Samples since the last model. */
  fresh: number;
}

const trainingSize = 400;
const heldOutSize = 100;
/** Every so many samples one is kept from all training, to judge models by. */
const heldOutEvery = 5;

/** Measured runs on one kind of GPU: those to learn from, and those that no model has seen. */
export class TrainingSet {
  private readonly training: SampleReservoir;
  private readonly heldOut: SampleReservoir;
  private seen: number;
  /** Samples since the last model. */
  fresh: number;

  constructor(random: Random, state?: TrainingSetState) {
    this.training = new SampleReservoir(trainingSize, random, state?.training);
    this.heldOut = new SampleReservoir(heldOutSize, random, state?.heldOut);
    this.seen = (state?.training.seen ?? 0) + (state?.heldOut.seen ?? 0);
    this.fresh = state?.fresh ?? 0;
  }

  /** Takes a sample; returns why it was refused, if it was. */
  add(sample: SlowdownSample): string | undefined {
    const isHeldOut = this.seen % heldOutEvery === heldOutEvery - 1;
    const refused = (isHeldOut ? this.heldOut : this.training).add(sample);
    if (refused !== undefined) return refused;
    this.seen += 1;
    this.fresh += 1;
    return undefined;
  }

  /** Adds what another set holds and this one does not. */
  addAll({ training, heldOut }: TrainingSetState): void {
    const own = this.state();
    const known = new Set([...own.training.samples, ...own.heldOut.samples].map((one) => JSON.stringify(one)));
    for (const sample of [...training.samples, ...heldOut.samples]) {
      if (!known.has(JSON.stringify(sample))) this.add(sample);
    }
  }

  state(): TrainingSetState {
    return { training: this.training.state(), heldOut: this.heldOut.state(), fresh: this.fresh };
  }
}
