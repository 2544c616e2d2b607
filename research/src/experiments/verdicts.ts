import type { Bench, BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir, readTable } from '@gpuwhisk/bench/data/csv';
import { meanOf, median } from '@gpuwhisk/bench/statistics';
import { readDurations, type Durations } from '../verdicts/functions.js';
import { greatestLoad } from '../verdicts/greatest-load.js';
import { drawRun, firstVerdictSeed, runOnce } from '../verdicts/run.js';
import type { MetricName } from '../verdicts/metrics.js';
import { readScenarios, type Scenario } from '../verdicts/scenario.js';
import { verdictOf, type Values, type Verdict } from '../verdicts/verdict.js';
import { verdictTable } from '../documents/verdict-tables.js';
import { measuredWorld, type MeasuredWorld, type WorldName } from '../verdicts/worlds.js';
import { readMeasured } from '../world/sources.js';
import { forms, type Bracket, type Form } from '../world/truth.js';

/** Seeds of a full run and of a quick one, and the load that most seeds are for. */
const fullSeeds = 30;
const quick = { seeds: 2, requests: 120, load: 0.9 } as const;
/** Loads besides the one nearest to `quick.load` take every third seed. */
const otherLoads = 3;
/** A scenario in which more of the answers than this are about partial overlaps is judged at both brackets. */
const mostPartial = 0.01;

/** A variant of the truth. */
interface Variant {
  form: Form;
  bracket: Bracket;
}

const nameOf = ({ form, bracket }: Variant): string => `${form}${bracket === 'whole' ? '' : '-disjoint'}`;

/**
 * Standard deviation of the logarithm of a run's time: the median over all measurements with a deviation of that over the time.
 * `licensed`: those of MIGPerf; else iGniter's and Abacus' too.
 */
async function readNoise(folder: string, licensed: boolean): Promise<number> {
  const parts = await Promise.all(
    deviations
      .filter(({ isLicensed }) => isLicensed || !licensed)
      .map(async ({ file, time, deviation }) => {
        const rows = await readTable(file, { [time]: 'number', [deviation]: 'optionalNumber' } as const, folder);
        return rows.flatMap((row) => {
          const [ms, deviationMs] = [Number(row[time]), row[deviation]];
          return deviationMs === undefined ? [] : [Number(deviationMs) / ms];
        });
      }),
  );
  return median(parts.flat());
}

/** Measurements of times with their deviations. */
const deviations = [
  { file: 'mig/migperf_a100_latency.csv', time: 'latency_ms', deviation: 'latency_std_ms', isLicensed: true },
  {
    ...{ file: 'interference/igniter_v100_mps_pairs.csv', time: 'lat_a_co_ms', deviation: 'lat_a_co_std_ms' },
    isLicensed: false,
  },
  {
    ...{ file: 'interference/abacus_a100_pairs.csv', time: 'makespan_mean_us', deviation: 'makespan_std_us' },
    isLicensed: false,
  },
];

/** What the runs of one load have shown: by metric, variant and contender, a value for each seed. */
interface Collected {
  values: Map<MetricName, Map<string, Map<string, number[]>>>;
  asked: number;
  extrapolated: number;
  beyond: number;
  partial: number;
}

function runLoad(
  scenario: Scenario,
  world: MeasuredWorld,
  durations: Durations,
  load: number,
  seeds: readonly number[],
  variants: readonly Variant[],
): Collected {
  const found: Collected = { values: new Map(), asked: 0, extrapolated: 0, beyond: 0, partial: 0 };
  for (const variant of variants) {
    for (const seed of seeds) {
      const drawn = drawRun(scenario, world, durations, { ...variant, seed });
      for (const contender of [scenario.ours, ...scenario.rivals]) {
        const { metrics, counts } = runOnce(drawn, contender, load);
        for (const metric of scenario.metrics)
          add(found.values, metric, nameOf(variant), contender.name, metrics[metric]);
        for (const count of ['asked', 'extrapolated', 'beyond', 'partial'] as const) found[count] += counts[count];
      }
    }
  }
  return found;
}

function add(values: Collected['values'], metric: MetricName, variant: string, name: string, value: number): void {
  const byVariant = values.get(metric) ?? new Map<string, Map<string, number[]>>();
  const byName = byVariant.get(variant) ?? new Map<string, number[]>();
  values.set(metric, byVariant.set(variant, byName.set(name, [...(byName.get(name) ?? []), value])));
}

/** Figures of one row of the table: a metric of a scenario at a load. */
function figuresOf(
  key: string,
  verdict: Verdict,
  values: ReadonlyMap<string, Values>,
  ours: string,
  found: Collected,
): Measurement[] {
  const part = (count: number): number => (found.asked === 0 ? 0 : count / found.asked);
  return [
    ...[...verdict.variants].flatMap(([variant, { difference }]) => {
      const at = `${key}.${variant}`;
      const means = [...(values.get(variant) ?? [])].map(([name, each]) => ({
        name: `${at}.${name === ours ? 'ours' : 'theirs'}.${name}`,
        value: meanOf(each),
      }));
      const { mean, low, high } = difference;
      const interval = Object.entries({ difference: mean, low, high });
      return [...means, ...interval.map(([figure, value]) => ({ name: `${at}.${figure}.${verdict.rival}`, value }))];
    }),
    { name: `${key}.extrapolated`, value: part(found.extrapolated) },
    { name: `${key}.beyond`, value: part(found.beyond) },
    { name: `${key}.partial`, value: part(found.partial) },
  ];
}

/** Seeds of verdict for a load: all at the one nearest to the headline's, fewer at others. */
function seedsOf(loads: readonly number[], load: number, count: number): number[] {
  const main = loads.reduce((best, one) => (Math.abs(one - quick.load) < Math.abs(best - quick.load) ? one : best));
  const all = Array.from({ length: count }, (_, at) => firstVerdictSeed + at);
  return load === main ? all : all.filter((_, at) => at % otherLoads === 0);
}

/** Verdicts of a scenario at one load, with the bracket `disjoint` too where partial overlaps decide. */
function judge(
  scenario: Scenario,
  world: MeasuredWorld,
  durations: Durations,
  load: number,
  seeds: readonly number[],
): Measurement[] {
  const variantsOf = (bracket: Bracket): Variant[] => forms.map((form) => ({ form, bracket }));
  const found = runLoad(scenario, world, durations, load, seeds, variantsOf('whole'));
  if (world.hasQuotas && found.partial > mostPartial * found.asked) {
    const other = runLoad(scenario, world, durations, load, seeds, variantsOf('disjoint'));
    for (const [metric, byVariant] of other.values)
      for (const [variant, byName] of byVariant) found.values.get(metric)?.set(variant, byName);
  }
  const rivals = scenario.rivals.filter(({ knowsTruth }) => knowsTruth !== true).map(({ name }) => name);
  return scenario.metrics.flatMap((metric) => {
    const values = found.values.get(metric) ?? new Map<string, Values>();
    const verdict = verdictOf(scenario.ours.name, rivals, values);
    const key = `${scenario.name}.${Math.round(100 * load)}.${metric}`;
    return figuresOf(key, verdict, values, scenario.ours.name, found);
  });
}

/** Seeds by which the greatest load is found. */
const loadSeeds = 3;

/** The greatest load at which each policy keeps its SLOs on average over seeds, in both truths. */
function greatestLoads(scenario: Scenario, world: MeasuredWorld, durations: Durations): Measurement[] {
  return forms.flatMap((form) => {
    const draws = Array.from({ length: loadSeeds }, (_, at) =>
      drawRun(scenario, world, durations, { form, bracket: 'whole', seed: firstVerdictSeed + at }),
    );
    return [scenario.ours, ...scenario.rivals].map((contender) => ({
      name: `${scenario.name}.greatestLoad.${form}.${contender.name}`,
      value: greatestLoad((load) => meanOf(draws.map((drawn) => runOnce(drawn, contender, load).metrics.late))),
    }));
  });
}

const { scenarios, hash } = await readScenarios();

/** Verdicts on the scenarios that research/scenarios.json names. */
export const verdicts: Bench = {
  summary: 'ours against the best rival in scenarios named beforehand, in two measured truths (BENCH_DATA)',
  parts: scenarios.map(({ name }) => name),
  async run({ options, say }: BenchContext) {
    const folder = benchDataDir();
    const isQuick = options.quick === true;
    const [measured, durations, noise] = await Promise.all([
      readMeasured(folder, { licensed: isQuick }),
      readDurations(folder),
      readNoise(folder, isQuick),
    ]);
    const count = isQuick ? quick.seeds : Math.min(fullSeeds, options.samples);
    say(`verdicts: ${isQuick ? 'licensed subset' : 'all data sets'}, ${count} seeds, scenarios ${hash.toString(16)}`);
    for (const { why } of measured.unused) say(`  not used: ${why}`);
    const worlds = new Map<WorldName, MeasuredWorld>();
    const worldOf = (name: WorldName): MeasuredWorld => {
      const world = worlds.get(name) ?? measuredWorld(name, measured, noise);
      worlds.set(name, world);
      return world;
    };
    const measurements: Measurement[] = [
      { name: 'scenarios.hash', value: hash },
      { name: 'noise', value: noise },
    ];
    for (const named of scenarios) {
      if (options.parts.length > 0 && !options.parts.includes(named.name)) continue;
      const scenario = isQuick ? shortened(named) : named;
      const world = worldOf(isQuick ? named.licensed : named.world);
      for (const load of scenario.loads) {
        say(`  ${named.name} at ${Math.round(100 * load)} %, world ${world.name}`);
        measurements.push(...judge(scenario, world, durations, load, seedsOf(scenario.loads, load, count)));
      }
      if (!scenario.greatestLoad) continue;
      say(`  ${named.name}, greatest load, world ${world.name}`);
      measurements.push(...greatestLoads(scenario, world, durations));
    }
    for (const [name, { rows }] of worlds) measurements.push({ name: `rows.${name}`, value: rows });
    const figures = Object.fromEntries(measurements.map(({ name, value }) => [name, value]));
    say(`\n${verdictTable(figures, 'table')}\n\n${verdictTable(figures, 'loads')}`);
    return measurements;
  },
};

/** A scenario as a quick run has it: one load, fewer requests. */
function shortened(scenario: Scenario): Scenario {
  const { loads, requests } = scenario;
  const load = loads.find((one) => one === quick.load) ?? (loads[0] as number);
  return { ...scenario, loads: [load], requests: Math.min(quick.requests, requests), greatestLoad: false };
}
