// Two experiments that PROTEAN's paper shows as pictures: schemes on one GPU (figure 2), and a change of geometry (figure 7).
import type { BenchContext, Measurement } from '../bench.js';
import { figuresOf, means, schemes, type Figures } from '../replay/protean/experiment.js';
import { latencies, quantiles, sloFactor } from '../replay/protean/metrics.js';
import { countedFromMs, lengthS } from '../replay/protean/arrivals.js';
import { baselines, figure2Schemes } from '../replay/protean/schemes.js';
import { serve, type Incident, type Served } from '../replay/protean/serving.js';
import { draw, primary, type Inputs, type Setting } from '../replay/protean/setting.js';
import { meanOf } from '../statistics.js';
import { sayMet, seedsOf } from './protean-compliance.js';

/** The two workloads of figure 2, requests a second. */
const alone = { dla: ['Simplified DLA', 500], albert: ['ALBERT', 6] } as const;

/** `figure2.MODEL.SCHEME.FIGURE`: figures of `figuresOf` on one GPU, half of the requests of one model strict. */
function figure2({ say, options }: BenchContext, inputs: Inputs): Measurement[] {
  const seeds = seedsOf({ options });
  return Object.entries(alone).flatMap(([key, [strict, perS]]) => {
    const setting: Setting = { ...primary, load: 'constant', pattern: 'bursts', strict, perS, rest: 'same' };
    const results = new Map<string, Figures[]>();
    for (const [name, make] of Object.entries(figure2Schemes)) {
      const figures = seeds.map((seed) => {
        const { world, batches: all } = draw(inputs, setting, seed);
        const batches = all.filter(({ readyMs }) => readyMs >= countedFromMs);
        const { served, totals } = serve(world, batches, make(), 1);
        return figuresOf(served, totals, sloFactor);
      });
      results.set(name, figures);
    }
    sayMet(say, `figure 2, ${strict}`, results);
    return means(`figure2.${key}`, results);
  });
}

/** Best effort of figure 7, in periods of 20 s: from the fifth one on a model that needs much more memory. */
const restNames = ['MobileNet V2', 'MobileNet V2', 'MobileNet V2', 'MobileNet V2', 'DPN 92'] as const;
/** Draws of figure 7, as a part of the seeds. */
const part = 0.2;
/** A point of the series, s. */
const binS = 5;
const bins = lengthS / binS;

/**
 * `figure7.SCHEME.BIN`: P99 of strict latency in multiples of the time alone, for batches that could start in each 5 s; `figure7.halves.BIN`:
 * fraction of GPUs that PROTEAN has cut into 4g and 3g. Means over draws.
 */
function figure7({ options }: BenchContext, inputs: Inputs): Measurement[] {
  const seeds = seedsOf({ options }, part);
  const setting: Setting = { ...primary, load: 'worldcup98', pattern: 'bursts', strict: 'ShuffleNet V2', restNames };
  const series = new Map<string, number[][]>();
  const add = (name: string, values: readonly number[]): void => {
    const found = series.get(name) ?? Array.from({ length: bins }, () => []);
    for (const [at, value] of values.entries()) if (Number.isFinite(value)) found[at]?.push(value);
    series.set(name, found);
  };
  for (const seed of seeds) {
    const drawn = draw(inputs, setting, seed);
    for (const name of ['protean', ...Object.keys(baselines)]) {
      const halves: number[] = [];
      const watch: Incident[] = Array.from({ length: bins }, (_, at) => ({
        atMs: at * binS * 1000,
        act: ({ devices }) => {
          const cut = devices.filter(({ slices }) => slices.length === 2 && slices.every(isHalf));
          halves.push(cut.length / devices.length);
        },
      }));
      const scheme = schemes[name]?.(drawn);
      if (scheme === undefined) throw new Error(`there is no scheme '${name}'`);
      const { served } = serve(drawn.world, drawn.batches, scheme, undefined, watch);
      add(name, tailsOf(served));
      if (name === 'protean') add('halves', halves);
    }
  }
  return [...series].flatMap(([name, values]) =>
    values.flatMap((ofBin, at) =>
      ofBin.length === 0 ? [] : [{ name: `figure7.${name}.${at}`, value: meanOf(ofBin) }],
    ),
  );
}

const isHalf = ({ profile }: { profile: string }): boolean => profile === '4g.20gb' || profile === '3g.20gb';

function tailsOf(served: readonly Served[]): number[] {
  return Array.from({ length: bins }, (_, at) => {
    const inBin = served.filter(({ batch }) => Math.floor(batch.readyMs / (binS * 1000)) === at);
    return quantiles(latencies(inBin, true, 'alone'), [99])[0] ?? NaN;
  });
}

export function proteanSnapshots(context: BenchContext, inputs: Inputs): Measurement[] {
  return [...figure2(context, inputs), ...figure7(context, inputs)];
}
