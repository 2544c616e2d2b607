import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { percentile } from '@gpuwhisk/bench/statistics';
import type { ModelParameters } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { HardwarePoint, IgniterData, PairSide, PowerPoint } from './igniter.js';

/** Idle power of the measured V100, from iGniter's configuration and NVIDIA's data sheet. */
const idleW = 53.5;
const capW = 300;

/**
 * Fits the model's parameters: the clock's fall to runs of like processes, contention to pairs after the clock's part
 * is removed, and noise as the median of the measured deviations.
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
 * Clock per watt above the cap, through the origin. The power demand of many processes is extrapolated from the first
 * few, which are below the cap.
 */
function fitClock(hardware: readonly HardwarePoint[]): ModelParameters['power'] {
  const baseMhz = Math.max(...hardware.map(({ frequencyMhz }) => frequencyMhz));
  const below = hardware.filter(({ frequencyMhz }) => frequencyMhz === baseMhz);
  const first = below[0];
  const last = below.at(-1);
  if (!first || !last || first === last)
    throw new RangeError('fewer than two numbers of processes stay below the power cap');
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

/**
 * Fits contention. Slowdowns are divided by the model's value without contention; the rest is linear in the neighbour's
 * traffic.
 */
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

/** Slowdown of one side of a pair over its solo time at the same partition. */
export function predictPair(parameters: ModelParameters, side: PairSide, power: readonly PowerPoint[]): number {
  const { base, perL2, perDram } = parameters.contention;
  const { l2Util, dramUtil } = side.neighbour;
  return Math.max(1, 1 + base + perL2 * l2Util + perDram * dramUtil) / clockPart(side, power, parameters.power);
}

/** The clock of the pair over its base clock. */
function clockPart(side: PairSide, power: readonly PowerPoint[], clock: ModelParameters['power']): number {
  const { neighbour } = side;
  const watts =
    clock.idleW +
    powerOf(power, side.model, side.batch, side.share, clock.idleW) +
    powerOf(power, neighbour.model, neighbour.batch, neighbour.share, clock.idleW);
  return 1 - (clock.mhzPerW * Math.max(0, watts - clock.capW)) / clock.baseMhz;
}

/** Power above idle, W: linear in the share, and in the logarithm of the batch, between measured points. */
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

/** Linear between points, constant beyond them. */
function interpolate(points: readonly (readonly [number, number])[], at: number): number {
  const sorted = [...points].sort((a, b) => a[0] - b[0]);
  const above = sorted.findIndex(([x]) => x >= at);
  if (above === 0) return (sorted[0] as [number, number])[1];
  if (above < 0) return (sorted.at(-1) as [number, number])[1];
  const [x0, y0] = sorted[above - 1] as [number, number];
  const [x1, y1] = sorted[above] as [number, number];
  return y0 + ((at - x0) / (x1 - x0)) * (y1 - y0);
}

/**
 * Coefficients, none negative, that minimise the squared error of `rows`·c against `targets`, by trying every subset of
 * columns (for a few columns). A column that is left out has 0.
 */
export function nonNegativeLeastSquares(rows: readonly (readonly number[])[], targets: readonly number[]): number[] {
  const width = rows[0]?.length ?? 0;
  let best = { coefficients: Array<number>(width).fill(0), error: Infinity };
  for (let subset = 0; subset < 2 ** width; subset += 1) {
    const columns = Array.from({ length: width }, (_, i) => i).filter((i) => (subset >> i) & 1);
    const solved = solve(columns, rows, targets);
    if (!solved || solved.some((value) => value < 0)) continue;
    const coefficients = Array<number>(width).fill(0);
    columns.forEach((column, i) => (coefficients[column] = solved[i] as number));
    const error = rows.reduce((sum, row, i) => sum + (dot(row, coefficients) - (targets[i] as number)) ** 2, 0);
    if (error < best.error) best = { coefficients, error };
  }
  return best.coefficients;
}

/** Solves the normal equations over the chosen columns by Gaussian elimination; undefined if they are singular. */
function solve(
  columns: readonly number[],
  rows: readonly (readonly number[])[],
  targets: readonly number[],
): number[] | undefined {
  const n = columns.length;
  const matrix = columns.map((a) => [
    ...columns.map((b) => rows.reduce((sum, row) => sum + (row[a] as number) * (row[b] as number), 0)),
    rows.reduce((sum, row, i) => sum + (row[a] as number) * (targets[i] as number), 0),
  ]);
  for (let step = 0; step < n; step += 1) {
    const pivotRow = matrix
      .slice(step)
      .reduce((best, row) => (Math.abs(row[step] as number) > Math.abs(best[step] as number) ? row : best));
    const pivot = pivotRow[step] as number;
    if (Math.abs(pivot) < 1e-12) return undefined;
    matrix[matrix.indexOf(pivotRow)] = matrix[step] as number[];
    matrix[step] = pivotRow.map((value) => value / pivot);
    for (const [i, row] of matrix.entries()) {
      if (i === step) continue;
      const factor = row[step] as number;
      matrix[i] = row.map((value, j) => value - factor * (matrix[step]?.[j] as number));
    }
  }
  return matrix.map((row) => row[n] as number);
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * (b[i] as number), 0);
}

/**
 * Parameters fitted to `count` bootstrap samples of the pairs. Pairs are drawn with all their partitions, since these
 * are not independent; the few points of the clock are not resampled.
 */
export function bootstrapModels(data: IgniterData, count: number, random: Random): ModelParameters[] {
  const byPair = new Map<string, PairSide[]>();
  for (const one of data.pairs) {
    const group = byPair.get(one.pair);
    if (group) group.push(one);
    else byPair.set(one.pair, [one]);
  }
  const groups = [...byPair.values()];
  const draw = (): PairSide[] => groups[Math.floor(randomFraction(random) * groups.length)] as PairSide[];
  return Array.from({ length: count }, () => fitModel({ ...data, pairs: groups.flatMap(draw) }));
}

/** Mean absolute errors of the slowdown on pairs that were left out of the fit. */
interface Validation {
  leftOut: 'pair' | 'model';
  model: number;
  /** Error of the constant predictor, the mean slowdown of the fitted pairs. */
  constant: number;
}

/**
 * Errors of fits without each pair (or each model, with all its pairs) on the part left out, and of the constant
 * predictor.
 */
export function validate(data: IgniterData, leftOut: Validation['leftOut']): Validation {
  const groups =
    leftOut === 'pair'
      ? [...new Set(data.pairs.map(({ pair }) => pair))].map((name) => (one: PairSide) => one.pair === name)
      : [...new Set(data.pairs.map(({ model }) => model))].map(
          (name) => (one: PairSide) => one.model === name || one.neighbour.model === name,
        );
  let modelError = 0;
  let constantError = 0;
  let count = 0;
  for (const isOut of groups) {
    const seen = data.pairs.filter((one) => !isOut(one));
    const parameters = fitModel({ ...data, pairs: seen });
    const mean = seen.reduce((sum, { slowdown }) => sum + slowdown, 0) / seen.length;
    for (const one of data.pairs.filter(isOut)) {
      modelError += Math.abs(predictPair(parameters, one, data.power) - one.slowdown);
      constantError += Math.abs(mean - one.slowdown);
      count += 1;
    }
  }
  return { leftOut, model: modelError / count, constant: constantError / count };
}
