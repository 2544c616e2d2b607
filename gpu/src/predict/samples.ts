// Measured slowdowns: their checks, reservoirs of bounded size, and the sets that models are trained and judged by.
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import type { CoLocated } from './slowdown-predictor.js';

/** A measured run. */
export interface SlowdownSample {
  one: CoLocated;
  others: readonly CoLocated[];
  /** Its time over its time alone at 100 %. */
  slowdown: number;
}

/** Neighbours of one run: as many as one MPS server has clients. */
const mostOthers = 64;
/** Utilisations are measured, and a little more than all of a GPU is rounding. */
const mostUtil = 1.05;
/** No neighbour makes a run twice as fast: its time alone was wrong. */
const leastSlowdown = 0.5;
/** A run that takes a thousand times as long was stopped, or its clock jumped. */
const mostSlowdown = 1000;

/** Why nothing may be learned from `sample`, or undefined where it may. */
export function sampleFault({ one, others, slowdown }: SlowdownSample): string | undefined {
  if (!(slowdown >= leastSlowdown && slowdown <= mostSlowdown)) {
    return `a slowdown of ${slowdown} is not from ${leastSlowdown} to ${mostSlowdown}`;
  }
  if (others.length > mostOthers) return `${others.length} neighbours are more than ${mostOthers}`;
  for (const { features, share } of [one, ...others]) {
    if (!(share > 0 && share <= 1)) return `a share of ${share} is not above 0 and at most 1`;
    if (!('smUtil' in features)) return 'smUtil is missing';
    for (const [name, value] of Object.entries(features)) {
      if (!(value >= 0 && value <= mostUtil)) return `${name} of ${value} is not from 0 to 1`;
    }
  }
  return undefined;
}

/** What a reservoir holds, to be stored. */
interface ReservoirState {
  /** Samples offered so far, those refused not counted. */
  seen: number;
  samples: readonly SlowdownSample[];
}

/**
 * A random choice of all samples offered, of bounded size: each is in it with the same probability (Vitter 1985,
 * algorithm R). So a function that runs often cannot push out what was learned of others all at once.
 */
export class SampleReservoir {
  private readonly samples: SlowdownSample[];
  private seen: number;

  /** `state`: what an earlier one held; samples in it that are at fault are dropped. Throws RangeError for no capacity. */
  constructor(
    private readonly capacity: number,
    private readonly random: Random,
    state: ReservoirState = { seen: 0, samples: [] },
  ) {
    if (!(capacity >= 1)) throw new RangeError(`A reservoir holds at least one sample, not ${capacity}.`);
    this.samples = state.samples.filter((sample) => sampleFault(sample) === undefined).slice(0, capacity);
    this.seen = Math.max(state.seen, this.samples.length);
  }

  /** Offers a sample; returns why it was refused, if it was. */
  add(sample: SlowdownSample): string | undefined {
    const fault = sampleFault(sample);
    if (fault !== undefined) return fault;
    this.seen += 1;
    if (this.samples.length < this.capacity) {
      this.samples.push(sample);
      return undefined;
    }
    const place = Math.floor(randomFraction(this.random) * this.seen);
    if (place < this.capacity) this.samples[place] = sample;
    return undefined;
  }

  state(): ReservoirState {
    return { seen: this.seen, samples: [...this.samples] };
  }
}

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
