// Packing of instances on few devices by Dilu's algorithm 1 and by others (Dilu, section 5.5 and figure 20).
import { seededRandom } from '@gpuwhisk/common/system/random';
import { oversubscriptionDefaults } from '@gpuwhisk/gpu/algorithms/dilu/oversubscription';
import { thousandths } from '@gpuwhisk/gpu/ledger/occupancy';
import { medianOf, type BenchContext, type Measurement } from '@gpuwhisk/bench/bench';
import { benchDataDir } from '@gpuwhisk/bench/data/csv';
import { diluSetSizes, readAlibabaPods, readDiluInstances, type InstanceEvent } from '../data/instance-sets.js';
import { boundsOf, type Bounds, type FleetShape, type PackingRule } from '../replay/dilu/fleet.js';
import { drawnInstances, inTime, type PackedInstance, type PackingEvent } from '../replay/dilu/instances.js';
import { ledgerPacker, mostSpans } from '../replay/dilu/ledger-packer.js';
import { pack, packerOf, repacked, type Packed } from '../replay/dilu/packing.js';
import { diluLiteral, exclusive, infless, ours, type RuleParts } from '../replay/dilu/rules.js';
import { meanOf } from '@gpuwhisk/bench/statistics';

/** Dilu's cluster of section 5.1: 1,000 nodes of four GPUs with 40 GB. */
const shape: FleetShape = { nodes: 1000, perNode: 4, memoryMiB: 40 * 1024 };
/** Alibaba's nodes have up to eight GPUs. */
const alibabaShape: FleetShape = { ...shape, perNode: 8 };

const bounds: Bounds = oversubscriptionDefaults;
const whole: RuleParts = { complementarity: true, affinity: true, spans: mostSpans };

/** Rules besides ours, by their names in figures. */
const others = (within: Bounds): Readonly<Record<string, PackingRule>> => ({
  exclusive,
  inflessL: infless('limit'),
  inflessR: infless('request'),
  literal: diluLiteral(boundsOf(within)),
});

/** Sizes and seeds of drawn sets. */
const drawnSizes = [1600, 3200] as const;
const seeds = [1, 2, 3, 4, 5] as const;

const sensitivity = {
  omega: [0.8, 0.9, 1, 1.1, 1.25, 1.5],
  gamma: [1, 1.25, 1.5, 1.75, 2, 3],
} as const;

/** Weights of the SMs in the score (α); memory has the rest. */
const weights = [0.4, 0.5, 0.6, 0.7] as const;

const figures = ['gpus', 'mostGpus', 'smFragments', 'memoryFragments'] as const;

/** A set of instances, or several of a kind whose figures are averaged. */
interface PackedSet {
  name: string;
  shape: FleetShape;
  sets: readonly (readonly PackingEvent[])[];
}

/** Figures of every rule on every set; the sets of Dilu's authors and Alibaba's pods come from BENCH_DATA. */
export async function diluPacking({ say }: BenchContext): Promise<Measurement[]> {
  const folder = benchDataDir();
  const measurements: Measurement[] = [];
  for (const size of diluSetSizes) {
    const events = packable(await readDiluInstances(size, folder));
    measurements.push(...compared({ name: String(size), shape, sets: [events] }, say), overRepacked(size, events));
  }
  for (const size of drawnSizes) {
    const sets = seeds.map((seed) => drawnInstances(size, seededRandom(seed), false));
    measurements.push(...compared({ name: `drawn${size}`, shape, sets }, say));
  }
  const pods = packable((await readAlibabaPods(folder)).map((one) => ({ ...one, kind: 'inference' as const })));
  measurements.push(...compared({ name: 'alibaba', shape: alibabaShape, sets: [pods] }, say));
  measurements.push(...worst(measurements), ...ablations(say), ...sensitivities(say), ...(await weighted(folder)));
  return measurements;
}

/** Events as rules see them: thousandths and MiB; a memory that is not told is the least that there is. */
function packable(events: readonly InstanceEvent[]): PackingEvent[] {
  const known = new Map<string, PackedInstance>();
  return inTime(
    events.map(({ atS, isStart, id, kind, gpus, request, limit, memoryGb }) => {
      const instance = known.get(id) ?? {
        ...{ id, function: id, kind, gpus },
        ...{ request: thousandths(request), limit: thousandths(limit), memoryMiB: Math.max(1, memoryGb * 1024) },
      };
      known.set(id, instance);
      return { atS, isStart, instance };
    }),
  );
}

/** Ours in the ledger and the other rules on a set, with the lower bound and the times of placements. */
function compared({ name, shape: fleet, sets }: PackedSet, say: BenchContext['say']): Measurement[] {
  const timed = sets.map((events) => {
    const packer = ledgerPacker(fleet, bounds);
    return { packed: pack(events, packer, fleet, bounds), us: packer.us };
  });
  const platform = timed.map(({ packed }) => packed);
  const exhaustive = sets.map((events) => pack(events, packerOf(fleet, ours(boundsOf(bounds), whole)), fleet, bounds));
  const byRule = new Map<string, readonly Packed[]>([['dilu', platform]]);
  for (const [rule, of] of Object.entries(others(bounds))) {
    byRule.set(
      rule,
      sets.map((events) => pack(events, packerOf(fleet, of), fleet, bounds)),
    );
  }
  const bound = mean(platform, 'bound');
  const gpus = mean(platform, 'gpus');
  const told = [...byRule].map(([rule, packed]) => `${rule} ${mean(packed, 'gpus').toFixed(1)}`);
  say(`  ${name}: ${told.join(', ')}, bound ${bound.toFixed(1)} GPUs`);
  const prefix = `packing.${name}`;
  const literal = byRule.get('literal') ?? [];
  return [
    ...[...byRule].flatMap(([rule, packed]) =>
      figures.map((figure) => ({ name: `${prefix}.${rule}.${figure}`, value: mean(packed, figure) })),
    ),
    { name: `${prefix}.bound`, value: bound },
    { name: `${prefix}.overBound`, value: gpus / bound },
    { name: `${prefix}.spanned`, value: mean(platform, 'spanned') },
    { name: `${prefix}.overExhaustive`, value: gpus - mean(exhaustive, 'gpus') },
    ...(['gpus', 'smFragments', 'memoryFragments'] as const).map((figure) => ({
      name: `${prefix}.overLiteral.${figure}`,
      value: mean(platform, figure) - mean(literal, figure),
    })),
    { name: `${prefix}.wholeBound`, value: mean(platform, 'wholeBound') },
    { name: `${prefix}.overWholeBound`, value: gpus / mean(platform, 'wholeBound') },
    medianOf(
      `${prefix}.placeMs`,
      timed.map(({ us }) => us.reduce((sum, one) => sum + one, 0) / 1000),
    ),
    medianOf(
      `${prefix}.placeUs`,
      timed.flatMap(({ us }) => us),
    ),
  ];
}

/** Devices in use over those if everything is put again, over the same times of a set. */
function overRepacked(size: number, events: readonly PackingEvent[]): Measurement {
  const rule = ours(boundsOf(bounds), whole);
  const { usedAt } = pack(events, packerOf(shape, rule), shape, bounds);
  const again = repacked(events, shape, rule);
  return { name: `packing.${size}.overRepacked`, value: meanOf(usedAt) / meanOf(again) };
}

function mean(packed: readonly Packed[], figure: Exclude<keyof Packed, 'usedAt'>): number {
  return meanOf(packed.map((one) => one[figure]));
}

/** What bars look at, over the sets of Dilu's authors. */
function worst(measurements: readonly Measurement[]): Measurement[] {
  const ofSets = (figure: string): number[] =>
    diluSetSizes.map((size) => measurements.find(({ name }) => name === `packing.${size}.${figure}`)?.value ?? NaN);
  return [
    ...['gpus', 'smFragments', 'memoryFragments'].map((figure) => ({
      name: `packing.overLiteralMost.${figure}`,
      value: Math.max(...ofSets(`overLiteral.${figure}`)),
    })),
    { name: 'packing.overBoundMost', value: Math.max(...ofSets('overBound')) },
    { name: 'packing.overWholeBoundMost', value: Math.max(...ofSets('overWholeBound')) },
    { name: 'packing.overRepackedMost', value: Math.max(...ofSets('overRepacked')) },
    { name: 'packing.overExhaustiveMost', value: Math.max(...ofSets('overExhaustive').map(Math.abs)) },
  ];
}

/** Without parts of algorithm 1: on sets whose functions have several instances, as affinity counts for nothing otherwise. */
function ablations(say: BenchContext['say']): Measurement[] {
  const sets = seeds.map((seed) => drawnInstances(800, seededRandom(seed), true));
  const variants: Readonly<Record<string, RuleParts>> = {
    dilu: whole,
    withoutRc: { ...whole, complementarity: false },
    withoutWa: { ...whole, affinity: false },
    withoutSpans: { ...whole, spans: 1 },
  };
  return Object.entries(variants).flatMap(([name, parts]) => {
    const packed = sets.map((events) => pack(events, packerOf(shape, ours(boundsOf(bounds), parts)), shape, bounds));
    say(
      `  recurring functions, ${name}: ${mean(packed, 'gpus').toFixed(1)} GPUs, lag ${mean(packed, 'lag').toFixed(3)}`,
    );
    return ([...figures, 'lag'] as const).map((figure) => ({
      name: `packing.ablation.${name}.${figure}`,
      value: mean(packed, figure),
    }));
  });
}

/** Devices by α on the sets of Dilu's authors and on drawn ones of 800 instances, and those of their rule. */
async function weighted(folder: string): Promise<Measurement[]> {
  const published = await Promise.all(diluSetSizes.map((size) => readDiluInstances(size, folder)));
  const sets = new Map(diluSetSizes.map((size, at) => [String(size), [packable(published[at] ?? [])]]));
  sets.set(
    'drawn800',
    seeds.map((seed) => drawnInstances(800, seededRandom(seed), false)),
  );
  const within = boundsOf(bounds);
  const rules = new Map(weights.map((alpha) => [String(alpha), ours(within, { ...whole, alpha })]));
  rules.set('literal', diluLiteral(within));
  return [...rules].flatMap(([rule, of]) =>
    Array.from(sets, ([set, all]) => ({
      name: `packing.alpha.${rule}.${set}.gpus`,
      value: meanOf(all.map((events) => pack(events, packerOf(shape, of), shape, bounds).gpus)),
    })),
  );
}

/** Devices by Ω and by γ, on the first drawn set of the greatest size. */
function sensitivities(say: BenchContext['say']): Measurement[] {
  const events = drawnInstances(3200, seededRandom(seeds[0]), false);
  return Object.entries(sensitivity).flatMap(([of, values]) =>
    values.flatMap((value) => {
      const within = { ...bounds, [of]: value };
      const packed = pack(events, ledgerPacker(shape, within), shape, within);
      say(`  ${of} ${value}: ${packed.gpus.toFixed(1)} GPUs`);
      return figures.map((figure) => ({ name: `packing.${of}.${value}.${figure}`, value: packed[figure] }));
    }),
  );
}
