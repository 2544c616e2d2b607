import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Bench, Measurement } from '@gpuwhisk/bench/bench';
import { commandLine } from '@gpuwhisk/bench/options';
import { resultsDir } from '../results.js';
import { bestOther, gainOver, intervalOf, type Compared, type Figures } from '../replay/experiments/compare.js';
import { paperClaims, figure, type Findings } from '../replay/experiments/report.js';
import { oursName } from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { barChart, intervalText, verdict } from '../replay/experiments/tables.js';
import { validate } from '../replay/model/fit.js';
import { idleSetting, igniterSetting, lucidSetting, readModelData, tableOneSetting } from '../replay/settings.js';
import { idleSms } from './faashare-idle.js';
import { overload, serverless } from './faashare-loads.js';
import { moves } from './faashare-moves.js';
import { rules } from './faashare-rules.js';
import { ablations, orders, overall, overheads, perturbation, prepare, scaling, traces } from './faashare-parts.js';
import { recurring } from './faashare-recurring.js';
import { explorationSensitivity, waits } from './faashare-sensitivity.js';

/** Seeds of every comparison, and bootstrap draws of the model's parameters; `--samples` may request fewer. */
const mostSeeds = 30;
const mostPerturbedSeeds = 10;

/** FaaShare's experiments in replay against its baselines. Reads measured data from BENCH_DATA. */
export const faashare: Bench = {
  summary: "FaaShare's experiments in replay: 120 jobs of table I, against its baselines (needs BENCH_DATA)",
  parts: ['table1', 'overload', 'short', 'idle', 'rules', 'moves', 'recurring', 'igniter', 'lucid', 'xi', 'waits'],
  simulated: true,
  async run({ options, say }) {
    const wants = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const seeds = Math.min(mostSeeds, options.samples);
    const data = await readModelData();
    const errors = [validate(data, 'pair'), validate(data, 'model')];
    const measurements: Measurement[] = errors.flatMap(({ leftOut, model, constant }) => [
      { name: `modelError.${leftOut}`, value: model },
      { name: `constantError.${leftOut}`, value: constant },
    ]);
    const text = [
      `Command: \`${commandLine(options, 'research')}\`; ${seeds} seeds, 95 % intervals. Slowdowns of pairs that were kept out of the` +
        ' fit, mean absolute error: ' +
        errors
          .map(
            ({ leftOut, model, constant }) =>
              `leaving one ${leftOut} out, the model ${model.toFixed(4)}, a constant ${constant.toFixed(4)}`,
          )
          .join('; ') +
        '.',
    ];
    const add = (title: string | undefined, found: Findings): void => {
      measurements.push(...found.measurements);
      if (title !== undefined) text.push(title);
      text.push(...found.text);
    };

    if (wants('table1')) {
      const prepared = prepare(await tableOneSetting(data, seeds), options.seed, seeds, say);
      const found = overall(prepared, ['low', 'medium', 'high', 'full', 'over']);
      const headline = claims(found.figures, options.seed);
      add('### Against the paper', headline);
      add('### Table I, model tier (extrapolated: sets no bar)', found);
      await charts(found.figures, options.seed);
      for (const part of [scaling, orders, ablations, overheads]) add(undefined, part(prepared));
      add(undefined, await traces(prepared));
      const fewer = { ...prepared, seeds: Math.min(mostPerturbedSeeds, seeds) };
      add(undefined, perturbation(fewer, options.seed));
    }
    if (wants('overload') || wants('short') || wants('rules')) {
      const prepared = prepare(await tableOneSetting(data, seeds), options.seed, seeds, say);
      if (wants('overload')) add('### Overload (extrapolated as table I)', overload(prepared));
      if (wants('rules')) add('### What each rule gains', rules(prepared));
      if (wants('short')) add('### Serverless lengths (extrapolated as table I)', await serverless(prepared));
    }
    if (wants('idle')) {
      const prepared = prepare(await idleSetting(data, seeds), options.seed, seeds, say);
      add('### Workloads that leave SMs idle, model tier', idleSms(prepared));
    }
    if (wants('igniter')) {
      const prepared = prepare(await igniterSetting(data, seeds), options.seed, seeds, say);
      add('### Pairs of inference on a V100, model tier', overall(prepared, ['high']));
    }
    if (wants('lucid')) {
      const prepared = prepare(await lucidSetting(), options.seed, seeds, say);
      add('### Pairs of training on an RTX 3090, lookup tier', overall(prepared, ['high']));
    }
    if (wants('xi') || wants('waits')) {
      const few = Math.min(mostPerturbedSeeds, seeds);
      const prepared = prepare(await tableOneSetting(data, few), options.seed, few, say);
      if (wants('xi')) add('### Sensitivity to ξ', await explorationSensitivity(prepared, options.seed));
      if (wants('waits')) add('### The bound on waiting', waits(prepared));
    }
    if (wants('moves')) {
      for (const setting of [await tableOneSetting(data, seeds), await igniterSetting(data, seeds)]) {
        const prepared = prepare(setting, options.seed, seeds, say);
        add(`### Shares that move, setting ${setting.name}`, await moves(prepared));
      }
    }
    if (wants('recurring')) {
      const settings = [await tableOneSetting(data, seeds), await igniterSetting(data, seeds)];
      for (const setting of settings) {
        const prepared = prepare(setting, options.seed, seeds, say);
        add(`### The table of measured sets, setting ${setting.name}`, await recurring(prepared, options.seed));
      }
      // Of the setting where results stay within measured points.
      for (const name of ['tableHitShare', 'tableJctGain', 'tableJctBound']) {
        const found = measurements.find((one) => one.name === `igniter.${name}`);
        if (found !== undefined) measurements.push({ ...found, name });
      }
    }
    const ratios = measurements.filter(({ name }) => name.endsWith('.waitOverBound')).map(({ value }) => value);
    if (ratios.length > 0) measurements.push({ name: 'waitOverBound', value: Math.max(...ratios) });
    if (options.parts.length === 0) await writeFile(join(resultsDir, 'faashare.md'), `${text.join('\n\n')}\n`);
    else say(text.join('\n\n'));
    return measurements;
  },
};

function scenarioOf(figures: ReadonlyMap<string, Figures>, name: string): Figures {
  const found = figures.get(name);
  if (found === undefined) throw new RangeError(`scenario '${name}' was not run`);
  return found;
}

/** The paper's claims beside ours. */
function claims(figures: ReadonlyMap<string, Figures>, seed: number): Findings {
  const random = seededRandom(seed);
  const high = scenarioOf(figures, 'high');
  const closed = scenarioOf(figures, 'closed');
  const against: readonly [keyof typeof paperClaims & ('jctGain' | 'makespanGain'), Figures, Compared][] = [
    ['jctGain', high, 'jctMs'],
    ['makespanGain', closed, 'makespanMs'],
  ];
  const gains = against.map(([name, from, metric]) => {
    const gain = gainOver(from, oursName, bestOther(from, oursName, metric), metric, random);
    const claim = paperClaims[name];
    return {
      measurement: figure(name, gain.interval),
      row: [
        name,
        `\`${gain.than}\``,
        intervalText(gain.interval),
        `${claim * 100} %`,
        (gain.interval.mean / claim).toFixed(2),
        verdict(gain),
      ],
    };
  });
  const violations = intervalOf(high, oursName, 'violations', random);
  const { violations16: claim } = paperClaims;
  const ratio = (violations.mean / claim).toFixed(2);
  return {
    // `violations16` itself is measured in the part with other numbers of GPUs.
    measurements: gains.map(({ measurement }) => measurement),
    text: [
      markdownTable(
        ['figure', 'than the best baseline', 'ours (95 % interval)', 'paper', 'ratio', 'verdict'],
        [
          ...gains.map(({ row }) => row),
          [
            'violations16',
            '',
            intervalText(violations),
            `${claim * 100} %`,
            ratio,
            violations.high <= claim ? 'reached' : 'missed',
          ],
        ],
      ),
    ],
  };
}

async function charts(figures: ReadonlyMap<string, Figures>, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const folder = resultsDir;
  await mkdir(folder, { recursive: true });
  const drawn = [
    ['closed', 'makespanMs', 'Makespan, s'],
    ['high', 'jctMs', 'JCT at high load, s'],
  ] as const;
  for (const [scenario, metric, title] of drawn) {
    const of = scenarioOf(figures, scenario);
    const bars = [...of.keys()].map((name) => {
      const { mean, low, high } = intervalOf(of, name, metric, random);
      return { name, value: mean / 1000, low: low / 1000, high: high / 1000 };
    });
    const svg = barChart(`${title} (replay, model tier, extrapolated)`, bars, (value) => value.toFixed(0));
    await writeFile(join(folder, `faashare-${scenario}.svg`), svg);
  }
}
