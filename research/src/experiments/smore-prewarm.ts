import { seededRandom } from '@gpuwhisk/common/system/random';
import { FunctionForecaster, lsLstmDefaults, trainLsLstm, type LsLstmOptions } from '@gpuwhisk/gpu/forecast/ls-lstm';
import { hhpPrewarm, lsthPrewarm, type Prewarmer } from '@gpuwhisk/gpu/forecast/prewarm-rules';
import { instanceTarget } from '@gpuwhisk/gpu/forecast/prewarm-target';
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import { emptyPart, readDayTraces, readWeekTraces } from '../data/request-traces.js';
import {
  choiceParts,
  logLoss,
  rollingSplits,
  splitsOf,
  type Candidate,
  type PrewarmTraces,
  type Split,
} from '../replay/prewarm-forecasts.js';
import {
  bestOf,
  coldRate,
  coldRequests,
  defaultKnob,
  forecastScore,
  idleTimeBound,
  isRegular,
  keepAlivePrewarm,
  ruleScore,
  sumOf,
  tryAll,
  wasteRate,
  type TracePart,
  type PrewarmScore,
} from '../replay/prewarm-score.js';

/** Rules whose cold-start rates are to be met with less waste. */
const baselines: Readonly<Record<string, () => Prewarmer>> = {
  keepAlive1: () => keepAlivePrewarm(1),
  keepAlive2: () => keepAlivePrewarm(2),
  keepAlive5: () => keepAlivePrewarm(5),
  keepAlive10: () => keepAlivePrewarm(10),
  hhp: () => hhpPrewarm(),
  lsth: () => lsthPrewarm(),
};

/** Day traces with this part of empty minutes are judged; all are learned from. */
const judgedEmpty = { least: 0.1, most: 0.9 };

/**
 * A knob is to reach this part of the wanted cold-start rate on the validation part: rates of the test part spread
 * around those of the validation part. Fixed beforehand.
 */
const validationMargin = 0.8;

/** Cold-start rate that regular functions are to have at most. */
const regularCold = 0.01;

async function readTraces(): Promise<PrewarmTraces> {
  const folder = benchDataDir();
  const days = await readDayTraces(folder);
  const isJudged = (part: number): boolean => part >= judgedEmpty.least && part <= judgedEmpty.most;
  return { weeks: await readWeekTraces(folder), days, judgedDays: days.filter((one) => isJudged(emptyPart(one))) };
}

/** The candidate of least log loss on the parts of day 1 that neither the first models nor tests use. */
function choose(
  traces: PrewarmTraces,
  seed: number,
  say: BenchContext['say'],
): { chosen: Candidate; found: Measurement[] } {
  const common: LsLstmOptions = { ...lsLstmDefaults, seed };
  const sizes = {
    slow: { updates: 400, rate: 0.005 },
    fast: { updates: 400, rate: 0.01 },
    long: { updates: 800, rate: 0.01 },
  };
  const candidates = new Map<string, Candidate>(
    Object.entries(sizes).flatMap(([name, size]) =>
      (['all', 'pool'] as const).map(
        (scope) => [`${scope}.${name}`, { scope, options: { ...common, ...size } }] as const,
      ),
    ),
  );
  // Each model of its own has a twentieth of the minutes to learn from.
  candidates.set('own.slow', { scope: 'own', options: { ...common, updates: 150, rate: 0.005 } });
  candidates.set('own.fast', { scope: 'own', options: { ...common, updates: 150, rate: 0.01 } });
  const losses = Array.from(candidates, ([name, candidate]) => {
    const value = logLoss(choiceParts(traces, candidate));
    say(`  ${name}: log loss ${value.toFixed(4)}`);
    return { name, candidate, value };
  });
  const [best] = losses.toSorted((one, other) => one.value - other.value);
  if (best === undefined) throw new RangeError('There is no candidate.');
  say(`  chosen: ${best.name}`);
  return { chosen: best.candidate, found: losses.map(({ name, value }) => ({ name: `choiceLoss.${name}`, value })) };
}

/** The parts of a split that were regular before they began, or those that were not. */
function ofGroup({ tests, validations }: Split, wantsRegular: boolean): Split {
  const ofKind = (parts: readonly TracePart[]): TracePart[] =>
    parts.filter(({ trace, from }) => isRegular(trace, from) === wantsRegular);
  return { tests: ofKind(tests), validations: ofKind(validations) };
}

const rates = (name: string, score: PrewarmScore): Measurement[] => [
  { name: `coldRate.${name}`, value: coldRate(score) },
  { name: `waste.${name}`, value: wasteRate(score) },
  { name: `coldRequests.${name}`, value: coldRequests(score) },
];

/** Scores over the test parts: of each baseline, and of the forecast with the knob that validation gives for it. */
function againstBaselines(group: string, splits: readonly Split[]): Measurement[] {
  const tried = splits.map(({ validations, tests }) => ({ onValidation: tryAll(validations), tests, validations }));
  const tests = splits.flatMap((split) => split.tests);
  const onTests = tryAll(tests);
  const worst = { ratio: 0, over: -Infinity };
  const found = Object.entries(baselines).flatMap(([name, rule]) => {
    const theirs = sumOf(tests.map((part) => ruleScore(part, rule)));
    const ours = sumOf(
      tried.flatMap(({ onValidation, validations, tests: parts }) => {
        const wanted = coldRate(sumOf(validations.map((part) => ruleScore(part, rule))));
        const { knob } = bestOf(onValidation, validationMargin * wanted);
        return parts.map((part) => forecastScore(part, knob));
      }),
    );
    const matched = bestOf(onTests, coldRate(theirs)).score;
    worst.ratio = Math.max(worst.ratio, ours.idle / theirs.idle);
    worst.over = Math.max(worst.over, coldRate(ours) - coldRate(theirs));
    return [
      ...rates(`${group}.${name}`, theirs),
      ...rates(`${group}.${name}.smore`, ours),
      { name: `wasteRatio.${group}.${name}`, value: ours.idle / theirs.idle },
      { name: `wasteRatioMatched.${group}.${name}`, value: matched.idle / theirs.idle },
      { name: `wasteRatioBound.${group}.${name}`, value: idleTimeBound(tests, coldRate(theirs)) / theirs.idle },
    ];
  });
  return [
    ...found,
    { name: `wasteRatioMost.${group}`, value: worst.ratio },
    { name: `coldRateOverMost.${group}`, value: worst.over },
    ...rates(`${group}.smoreDefault`, sumOf(tests.map((part) => forecastScore(part, defaultKnob)))),
  ];
}

/** Scores of regular functions: the knob of at most 1 % cold starts on validation, and the baselines that reach 1 %. */
function regularFunctions(group: string, splits: readonly Split[]): Measurement[] {
  const tests = splits.flatMap((split) => split.tests);
  const ours = sumOf(
    splits.flatMap(({ validations, tests: parts }) => {
      const { knob } = bestOf(tryAll(validations), validationMargin * regularCold);
      return parts.map((part) => forecastScore(part, knob));
    }),
  );
  const theirs = Object.entries(baselines).map(([name, rule]) => ({
    name,
    score: sumOf(tests.map((part) => ruleScore(part, rule))),
  }));
  const reaching = theirs.filter(({ score }) => coldRate(score) <= regularCold).map(({ score }) => score.idle);
  return [
    ...theirs.flatMap(({ name, score }) => rates(`${group}.${name}`, score)),
    ...rates(`${group}.smore`, ours),
    // No baseline at 1 %: the ratio is 0, as any waste would do.
    { name: `wasteRatio.${group}`, value: reaching.length === 0 ? 0 : ours.idle / Math.min(...reaching) },
    { name: `wasteRatioBound.${group}`, value: idleTimeBound(tests, regularCold) / Math.min(...reaching) },
    ...rates(`${group}.smoreDefault`, sumOf(tests.map((part) => forecastScore(part, defaultKnob)))),
  ];
}

function judge(prefix: string, splits: readonly Split[]): Measurement[] {
  const bursty = splits.map((split) => ofGroup(split, false)).filter(({ tests }) => tests.length > 0);
  const regular = splits.map((split) => ofGroup(split, true)).filter(({ tests }) => tests.length > 0);
  return [
    ...(bursty.length > 0 ? againstBaselines(`${prefix}bursty`, bursty) : []),
    ...(regular.length > 0 ? regularFunctions(`${prefix}regular`, regular) : []),
  ];
}

const functions = 10_000;
const rounds = 15;

/**
 * Processor time of a minute of 10,000 functions, s: their forecasts by both models, and their targets.
 */
function speed(seed: number): Measurement[] {
  const random = seededRandom(seed);
  const draw = (): number => (random.uint32() % 4 === 0 ? random.uint32() % 100 : 0);
  const requests = Array.from({ length: 2000 }, draw);
  const model = trainLsLstm([{ minute: 0, requests }], { ...lsLstmDefaults, updates: 5, seed });
  const forecasters = Array.from({ length: functions }, () => new FunctionForecaster(model));
  const times: number[] = [];
  let loaded = 0;
  for (let minute = 0; minute < rounds; minute += 1) {
    const arrivals = forecasters.map(draw);
    const start = process.cpuUsage();
    for (const [at, one] of forecasters.entries()) {
      loaded += instanceTarget(one.step(minute, arrivals[at] ?? 0), 1, defaultKnob.quantile);
    }
    const { user, system } = process.cpuUsage(start);
    // The engine compiles the code in the first rounds.
    if (minute >= 5) times.push((user + system) / 1e6);
  }
  if (!Number.isFinite(loaded)) throw new Error('A target is not finite.');
  return [medianOf('forecast10kS', times)];
}

/** Minutes of the plotted forecast. */
const plottedMinutes = 120;

/** Requests of the first function of a week, and what was expected of each minute, at the end of its last test part. */
function forecastSeries(splits: readonly Split[]): Measurement[] {
  const [part] = splits.at(-1)?.tests ?? [];
  if (part === undefined) throw new RangeError('There is no test part.');
  const { trace, from, to, forecasts } = part;
  const first = Math.max(from, to - plottedMinutes);
  return Array.from({ length: to - first }, (_, at) => at).flatMap((at) => [
    { name: `series.forecast.requests.${at}`, value: trace.minutes[first + at] ?? 0 },
    { name: `series.forecast.expected.${at}`, value: forecasts[first + at - from]?.requests ?? 0 },
  ]);
}

/**
 * SMORE's pre-warming. `coldRate`: active minutes that were not loaded ahead, of the active ones. `waste`: loaded
 * minutes without a request, of the loaded ones (thesis, eq. 3.13). `coldRequests`: eq. 3.14. `wasteRatio`: our loaded
 * minutes without a request over a baseline's, at the cold-start rate that validation parts let expect;
 * `...Matched`: at the baseline's very rate on the test part, for comparison only. `...Bound`: of the best rule that
 * sees idle times only and knows their outcomes.
 */
export async function prewarm({ options, say }: BenchContext): Promise<Measurement[]> {
  const traces = await readTraces();
  say(`  ${traces.weeks.length} functions of a week, ${traces.judgedDays.length} applications of a day`);
  const { chosen, found } = choose(traces, options.seed, say);
  const splits = rollingSplits(traces, chosen, say);
  const literal = { ...chosen, options: { ...chosen.options, inputs: 'counts' as const } };
  return [
    ...found,
    ...forecastSeries(splits),
    ...judge('', splits),
    ...judge('weeks.', splitsOf(splits, traces.weeks)),
    ...judge('days.', splitsOf(splits, traces.judgedDays)),
    ...judge('literal.', rollingSplits(traces, literal, say)),
    ...speed(options.seed),
  ];
}
