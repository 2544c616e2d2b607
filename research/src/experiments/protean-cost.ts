// Cost of rented machines, and the compliance that revocations cost (PROTEAN, section 6.1.3).
import type { BenchContext, Measurement } from '@gpuwhisk/bench/bench';
import { clairvoyantCost, costOf, missingPart, providerOf, rent, type Cloud } from '../replay/protean/cost.js';
import { compliance, sloFactor } from '../replay/protean/metrics.js';
import { schemes, serve, type Scheme } from '../replay/protean/run.js';
import { draw, primary, type Inputs, type Setting } from '../replay/protean/setting.js';
import { meanOf } from '@gpuwhisk/bench/statistics';
import { seedsOf } from './protean-compliance.js';

/** Probabilities of a revocation in an interval: high, moderate and low availability of spot machines (PROTEAN, section 5). */
const revocationProbabilities = { high: 0, moderate: 0.354, low: 0.708 } as const;

/** Prices per hour of a machine with 8 A100 GPUs, US dollars (table 3). */
const providerPrices = {
  aws: { onDemand: 32.7726, spot: 9.8318 },
  azure: { onDemand: 32.77, spot: 18.0235 },
  google: { onDemand: 30.0846, spot: 8.8147 },
} as const;

const intervalsS = [60, 300, 3600] as const;
/** Notices of providers (paper, section 2.3), s. */
const noticesS = [30, 120] as const;
const bootS = 120;
/** A machine of the paper's cluster has one of the eight GPUs that prices are for. */
const machines = 8;
/** Machines are rented for half a day. */
const rentedS = 43_200;

const modes = {
  protean: {},
  onDemandOnly: { useSpot: 0 },
  spotOnly: { useOnDemand: 0 },
} as const;

/** Draws of the market. */
const part = 0.24;

/**
 * `cost.PROVIDER.AVAILABILITY.INTERVAL.MODE`: cost over that of machines on demand only, with a notice of 120 s; `overBound`: cost over that of
 * a planner that knows the future; `cost.most`: the greatest of PROTEAN's; `cost.draws`: draws of each figure, compliance included. `costMissing.AVAILABILITY.INTERVAL.NOTICE`: part of the wanted machines that is missing.
 * `complianceLost.AVAILABILITY.INTERVAL.NOTICE`: fraction of strict requests within their SLO without revocations less that with them;
 * `complianceLost.most`: the greatest with a notice of at least the boot.
 */
export function proteanCost(context: BenchContext, inputs: Inputs): Measurement[] {
  const draws = { name: 'cost.draws', value: seedsOf(context, part).length };
  return [...costs(context), ...lost(context, inputs), draws];
}

function costs(context: BenchContext): Measurement[] {
  const seeds = seedsOf(context, part);
  const found = new Map<string, number[]>();
  const add = (name: string, value: number): void => void found.set(name, [...(found.get(name) ?? []), value]);
  for (const [availability, revocation] of Object.entries(revocationProbabilities)) {
    for (const everyS of intervalsS) {
      for (const seed of seeds) {
        const cloudAt = (prices: Cloud['prices']): Cloud => ({
          ...{ seed, revocation, everyS, noticeS: 120, bootS, prices, machines, lengthS: rentedS },
        });
        for (const provider of providers) {
          const cloud = cloudAt(pricesOf(provider));
          const name = `cost.${provider}.${availability}.${everyS}`;
          const paid = new Map(
            Object.entries(modes).map(([mode, settings]) => [mode, costOf(rent(settings, cloud), cloud)]),
          );
          for (const [mode, cost] of paid) add(`${name}.${mode}`, cost / (paid.get('onDemandOnly') ?? NaN));
          add(`${name}.overBound`, (paid.get('protean') ?? NaN) / (machines * clairvoyantCost(cloud, 0)));
        }
      }
    }
  }
  const measured = Array.from(found, ([name, values]) => ({ name, value: meanOf(values) }));
  for (const { name, value } of measured) context.say(`  ${name}: ${value.toFixed(3)}`);
  const ours = measured.filter(({ name }) => name.endsWith('.protean'));
  return [...measured, { name: 'cost.most', value: Math.max(...ours.map(({ value }) => value)) }];
}

const providers = Object.keys(providerPrices) as (keyof typeof providerPrices)[];

/** Per hour of one machine. */
function pricesOf(provider: keyof typeof providerPrices): Cloud['prices'] {
  const { onDemand, spot } = providerPrices[provider];
  return { 'on-demand': onDemand / machines, spot: spot / machines };
}

/** Batches come after machines have been rented for so long, so that revocations of every age occur, s. */
const settledS = 7200;

function lost(context: BenchContext, inputs: Inputs): Measurement[] {
  const seeds = seedsOf(context, part);
  const setting: Setting = { ...primary, load: 'worldcup98', pattern: 'bursts' };
  const prices = pricesOf('aws');
  const scheme = schemes['protean'] as Scheme;
  const draws = seeds.map((seed) => {
    const drawn = draw(inputs, setting, seed);
    return { seed, drawn, met: compliance(serve(drawn.world, drawn.batches, scheme).served, sloFactor) };
  });
  const measured = Object.entries(revocationProbabilities).flatMap(([availability, revocation]) =>
    intervalsS.flatMap((everyS) =>
      noticesS.flatMap((noticeS) => {
        const found = draws.map(({ seed, drawn, met }) => {
          const { world, batches } = drawn;
          const lengthS = Math.ceil((batches.at(-1)?.readyMs ?? 0) / 1000);
          const cloud: Cloud = { ...{ seed, revocation, everyS, noticeS, bootS, prices, machines, lengthS } };
          const rented = serve(world, batches, scheme, { provider: providerOf(cloud), fromMs: -settledS * 1000 });
          return {
            missing: missingPart(rented.machines, cloud),
            lost: met - compliance(rented.served, sloFactor),
          };
        });
        const end = `${availability}.${everyS}.${noticeS}`;
        const ofEnd = [
          { name: `costMissing.${end}`, value: meanOf(found.map(({ missing }) => missing)) },
          { name: `complianceLost.${end}`, value: meanOf(found.map((one) => one.lost)) },
        ];
        context.say(`  ${ofEnd.map(({ name, value }) => `${name} ${value.toFixed(4)}`).join(', ')}`);
        return ofEnd;
      }),
    ),
  );
  const noticed = measured.filter(({ name }) => name.startsWith('complianceLost') && name.endsWith(`.${bootS}`));
  return [...measured, { name: 'complianceLost.most', value: Math.max(...noticed.map(({ value }) => value)) }];
}
