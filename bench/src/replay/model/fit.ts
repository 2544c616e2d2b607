import { percentile } from '../../statistics.js';
import type { HardwarePoint, IgniterData, PairSide, PowerPoint } from './igniter.js';
import { nonNegativeLeastSquares } from './least-squares.js';
import type { ModelParameters } from './parameters.js';

/** Of the V100 that was measured (NVIDIA's data sheet, and iGniter's configuration for the idle power). */
const idleW = 53.5;
const capW = 300;

/**
 * The parameters of the model from measurements: the clock's fall from runs of like processes, contention from pairs
 * after the clock's part is taken out, noise as the median of the measured deviations.
 */
export function fitModel({ pairs, power, hardware }: IgniterData): ModelParameters {
  const clock = fitClock(hardware);
  return {
    contention: fitContention(pairs, power, clock),
    power: clock,
    noise: percentile(
      pairs.map(({ deviation }) => deviation),
      50,
    ),
  };
}

/**
 * Clock per watt above the cap, through the origin. What more than a few processes ask for is what each of the first
 * ones, which are below the cap, adds.
 */
function fitClock(hardware: readonly HardwarePoint[]): ModelParameters['power'] {
  const baseMhz = Math.max(...hardware.map(({ frequencyMhz }) => frequencyMhz));
  const below = hardware.filter(({ frequencyMhz }) => frequencyMhz === baseMhz);
  const first = below[0];
  const last = below.at(-1);
  if (!first || !last || first === last) throw new RangeError('two numbers of processes below the cap are needed');
  const perProcess = (last.powerW - first.powerW) / (last.processes - first.processes);
  const above = hardware
    .filter(({ frequencyMhz }) => frequencyMhz < baseMhz)
    .map(({ processes, frequencyMhz }) => ({
      watts: Math.max(0, first.powerW + (processes - first.processes) * perProcess - capW),
      drop: baseMhz - frequencyMhz,
    }));
  const squared = above.reduce((sum, { watts }) => sum + watts * watts, 0);
  const mhzPerW = squared === 0 ? 0 : above.reduce((sum, { watts, drop }) => sum + watts * drop, 0) / squared;
  return { idleW, capW, baseMhz, mhzPerW };
}

/** What the model says without contention is taken out; the rest is linear in the neighbour's traffic. */
function fitContention(
  pairs: readonly PairSide[],
  power: readonly PowerPoint[],
  clock: ModelParameters['power'],
): ModelParameters['contention'] {
  const rows = pairs.map(({ neighbour }) => [1, neighbour.l2Util, neighbour.dramUtil]);
  const targets = pairs.map((one) => one.slowdown * clockPart(one, power, clock) - 1);
  const [base = 0, perL2 = 0, perDram = 0] = nonNegativeLeastSquares(rows, targets);
  return { base, perL2, perDram };
}

/** Slowdown of one side of a pair over its time alone at the same partition. */
export function predictPair(parameters: ModelParameters, side: PairSide, power: readonly PowerPoint[]): number {
  const { base, perL2, perDram } = parameters.contention;
  const { l2Util, dramUtil } = side.neighbour;
  return Math.max(1, 1 + base + perL2 * l2Util + perDram * dramUtil) / clockPart(side, power, parameters.power);
}

/** The clock of the pair over its base. */
function clockPart(side: PairSide, power: readonly PowerPoint[], clock: ModelParameters['power']): number {
  const { neighbour } = side;
  const watts =
    clock.idleW +
    powerOf(power, side.model, side.batch, side.share, clock.idleW) +
    powerOf(power, neighbour.model, neighbour.batch, neighbour.share, clock.idleW);
  return 1 - (clock.mhzPerW * Math.max(0, watts - clock.capW)) / clock.baseMhz;
}

/** Power above idle, W: linear in the share, and in the batch's logarithm, between what was measured. */
export function powerOf(
  points: readonly PowerPoint[],
  model: string,
  batch: number,
  share: number,
  idle: number,
): number {
  const own = points.filter((point) => point.model === model);
  if (own.length === 0) throw new RangeError(`no power was measured for ${model}`);
  const atBatch = (one: number): [number, number][] =>
    own.filter((point) => point.batch === one).map((point) => [point.share, point.powerW - idle]);
  const batches = [...new Set(own.map((point) => point.batch))];
  return interpolate(
    batches.map((one): [number, number] => [Math.log(one), interpolate(atBatch(one), share)]),
    Math.log(batch),
  );
}

/** Linear between points, level beyond them. */
function interpolate(points: readonly (readonly [number, number])[], at: number): number {
  const sorted = [...points].sort((a, b) => a[0] - b[0]);
  const above = sorted.findIndex(([x]) => x >= at);
  if (above === 0) return (sorted[0] as [number, number])[1];
  if (above < 0) return (sorted.at(-1) as [number, number])[1];
  const [x0, y0] = sorted[above - 1] as [number, number];
  const [x1, y1] = sorted[above] as [number, number];
  return y0 + ((at - x0) / (x1 - x0)) * (y1 - y0);
}
