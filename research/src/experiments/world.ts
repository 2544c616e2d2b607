import { join } from 'node:path';
import { meanOf, percentile } from '@gpuwhisk/bench/statistics';
import type { Bench, BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import { repositoryDir } from '@gpuwhisk/bench/machine';
import { overBestPair, partnerGain, quotaGain, sharing, sliceWork } from '../world/headroom.js';
import type { Distribution } from '../world/headroom.js';
import { aloneErrors, kindOf, leftOutErrors, repeats } from '../world/left-out.js';
import type { Errors, Split } from '../world/left-out.js';
import type { MeasuredSet, Mode } from '../world/sets.js';
import { sidesOf } from '../world/sets.js';
import { readMeasured } from '../world/sources.js';
import type { Measured } from '../world/sources.js';
import { Truth } from '../world/truth.js';

/** The folder of the GPU kit's samples. */
const kitDir = join(repositoryDir, 'bench/results');

/** One data set on one GPU type in one mode. */
interface Part {
  source: string;
  gpu: string;
  mode: Mode;
}

const nameOf = ({ source, gpu, mode }: Part): string => `${source}.${gpu}.${mode}`;

function partsOf(sets: readonly MeasuredSet[]): Part[] {
  const parts = new Map<string, Part>();
  for (const { source, gpu, mode } of sets) parts.set(nameOf({ source, gpu, mode }), { source, gpu, mode });
  return [...parts.values()];
}

const setsOf = (sets: readonly MeasuredSet[], part: Part): MeasuredSet[] =>
  sets.filter((set) => nameOf(set) === nameOf(part));

const splits: readonly Split[] = ['models', 'larger', 'processes', 'quotas', 'sets'];

/** Sets, skipped rows and files that could not be used. */
function measureData({ sets, skipped, unused }: Measured, { say }: BenchContext): Measurement[] {
  for (const { why } of unused) say(`  not used: ${why}`);
  const reasons = new Map<string, { count: number; first: string }>();
  for (const { row, why } of skipped) {
    const key = `${row.replace(/:\d+$/, '')}: ${why}`;
    const known = reasons.get(key) ?? { count: 0, first: row };
    reasons.set(key, { ...known, count: known.count + 1 });
  }
  for (const [why, { count, first }] of reasons) say(`  skipped ${count}, first ${first}: ${why}`);
  return [
    ...partsOf(sets).flatMap((part) => {
      const own = setsOf(sets, part);
      const sizes = [...new Set(own.map(({ members }) => members.length))].sort();
      return sizes.map((size) => ({
        name: `sets.${nameOf(part)}.${size}`,
        value: own.filter(({ members }) => members.length === size).length,
      }));
    }),
    { name: 'rows.skipped', value: skipped.length },
    { name: 'files.unused', value: unused.length },
  ];
}

const metricOf = (kind: string): string => kind.replace(' ', '');

/** Errors of one part; `vsMultiplied`: over those of multiplied pair slowdowns on the same sides. */
function measureErrors(part: Part, { sets, alone: solo }: Measured, say: BenchContext['say']): Measurement[] {
  const { errors, refused } = leftOutErrors(part, sets, solo, splits);
  if (refused > 0) say(`  ${nameOf(part)}: ${refused} processes beside others are too few for a model`);
  const figures = errors.flatMap((one): Measurement[] => {
    const place = `${nameOf(part)}.${one.split}.${metricOf(one.kind)}`;
    const key = `${one.predictor.replace(' m', 'M')}.${place}${one.among === 'paired' ? '.paired' : ''}`;
    return [
      ...(one.predictor === 'T1' ? [{ name: `sides.${key.slice(3)}`, value: one.sides }] : []),
      { name: `log.${key}`, value: one.log },
      { name: `logP90.${key}`, value: one.logP90 },
      { name: `mae.${key}`, value: one.mae },
    ];
  });
  const alone = aloneErrors(setsOf(sets, part));
  const find = (of: Errors, predictor: Errors['predictor']): Errors | undefined =>
    errors.find(
      (one) => one.split === of.split && one.kind === of.kind && one.among === 'paired' && one.predictor === predictor,
    );
  const ratios = errors.flatMap((one): Measurement[] => {
    const multiplied = one.among === 'paired' ? find(one, 'multiplied') : undefined;
    if (multiplied === undefined || (one.predictor !== 'T1' && one.predictor !== 'T2')) return [];
    const key = `${one.predictor}.${nameOf(part)}.${one.split}.${metricOf(one.kind)}`;
    return [
      { name: `maeVsMultiplied.${key}`, value: one.mae / multiplied.mae },
      { name: `logVsMultiplied.${key}`, value: one.log / multiplied.log },
    ];
  });
  return [
    ...figures,
    ...ratios,
    ...(alone.length === 0
      ? []
      : [
          { name: `alone.${nameOf(part)}.sides`, value: alone.length },
          { name: `alone.${nameOf(part)}.log`, value: meanOf(alone) },
          { name: `alone.${nameOf(part)}.logP90`, value: percentile(alone, 90) },
        ]),
  ];
}

/** How far repeated measurements differ, by kind of set. */
function measureRepeats(part: Part, sets: readonly MeasuredSet[]): Measurement[] {
  const own = setsOf(sets, part);
  const kinds = [...new Set(sidesOf(own).map((side) => kindOf(part.mode, side)))];
  return kinds.flatMap((kind) => {
    const found = repeats(own.filter((set) => set.members.length > 1 && kindOf(part.mode, { set }) === kind));
    const key = `${nameOf(part)}.${metricOf(kind)}`;
    if (found.length === 0) return [];
    return [
      { name: `repeats.${key}`, value: found.length },
      { name: `repeatMedian.${key}`, value: percentile(found, 50) },
      { name: `repeatP90.${key}`, value: percentile(found, 90) },
    ];
  });
}

function distributionFigures(name: string, found: Distribution | undefined): Measurement[] {
  if (found === undefined) return [];
  const { count, p10, median, p90, below } = found;
  return Object.entries({ count, p10, median, p90, below }).map(([figure, value]) => ({
    name: `${name}.${figure}`,
    value,
  }));
}

const mostProcesses = 4;
const slicesOfDevice = 7;

function measureHeadroom(part: Part, sets: readonly MeasuredSet[], seed: number): Measurement[] {
  const own = setsOf(sets, part);
  const key = nameOf(part);
  const sizes = Array.from({ length: mostProcesses - 1 }, (_, at) => at + 2);
  const gain = partnerGain(own, seed);
  const quotas = quotaGain(own);
  return [
    ...sizes.flatMap((size) => distributionFigures(`work.${key}.${size}`, sharing(own, size))),
    ...(gain === undefined ? [] : [{ name: `partner.${key}`, value: gain }]),
    ...(quotas === undefined ? [] : distributionFigures(`quota.work.${key}`, quotas.work)),
    ...(quotas === undefined ? [] : distributionFigures(`quota.worseHit.${key}`, quotas.worseHit)),
    ...distributionFigures(`quota.halves.${key}`, quotas?.halves),
    ...sizes.slice(1).flatMap((size) => distributionFigures(`overPair.${key}.${size}`, overBestPair(own, size))),
    ...distributionFigures(`slices.${key}`, sliceWork(own, slicesOfDevice)),
  ];
}

/** Share of a quota that overlaps in part with its like: no data has it. */
const partialShare = 0.7;

/** What the brackets of a partial overlap differ by: work priced as the whole device for each over work priced as disjoint. */
function measureBrackets(part: Part, { sets, alone }: Measured): Measurement[] {
  const pairs = setsOf(sets, part).filter(
    ({ members, mode }) => members.length === 2 && mode === 'mps' && members.every(({ share }) => share === 0.5),
  );
  const hasWhole = setsOf(sets, part).some(
    ({ members }) => members.length > 1 && members.every(({ share }) => share === 1),
  );
  if (pairs.length === 0 || !hasWhole) return [];
  return (['T1', 'T2'] as const).flatMap((form) => {
    const truth = new Truth(
      part.gpu,
      part.mode,
      form,
      sets.filter(({ source }) => source === part.source),
      alone,
    );
    const ratios = pairs.flatMap(({ members }) => {
      if (members.some(({ stretch }) => stretch === undefined)) return [];
      const asked = members.map(({ workload }) => ({ workload, share: partialShare }));
      const [whole, disjoint] = (['whole', 'disjoint'] as const).map((bracket) =>
        truth.answer(asked, bracket).reduce((sum, { slowdown }) => sum + 1 / slowdown, 0),
      ) as [number, number];
      return [whole / disjoint];
    });
    const found =
      ratios.length === 0
        ? []
        : [10, 50, 90].map((at) => ({ name: `bracket.${form}.${nameOf(part)}.p${at}`, value: percentile(ratios, at) }));
    return found;
  });
}

/** The measured world: errors of its truths on parts that were left out, and the headroom in the data. */
export const world: Bench = {
  summary: 'truths fitted to measured sets: errors on parts left out, headroom in the data (BENCH_DATA)',
  parts: ['errors', 'headroom'],
  async run(context) {
    const { options, say } = context;
    const wants = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const licensed = options.quick === true;
    const measured = await readMeasured(benchDataDir(), { licensed, kit: kitDir });
    say(`world: ${licensed ? 'licensed subset' : 'all data sets'}, ${measured.sets.length} sets`);
    const measurements = measureData(measured, context);
    for (const part of partsOf(measured.sets)) {
      say(`  ${nameOf(part)}`);
      measurements.push(...measureRepeats(part, measured.sets));
      if (wants('headroom')) measurements.push(...measureHeadroom(part, measured.sets, options.seed));
      if (wants('headroom')) measurements.push(...measureBrackets(part, measured));
      if (wants('errors')) measurements.push(...measureErrors(part, measured, say));
    }
    return measurements;
  },
};
