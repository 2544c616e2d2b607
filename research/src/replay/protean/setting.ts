// One replay of PROTEAN's experiments: a world, its arrivals and its strict model, drawn from a seed.
import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { randomItem } from '@gpuwhisk/bench/statistics';
import {
  batchesOf,
  constantWindow,
  readHours,
  readTwitter,
  type Batch,
  type Pattern,
  type Stream,
  type Window,
} from './arrivals.js';
import { drawWorld, readWorldData, type ServedModel, type World, type WorldData } from './world.js';

/** Everything that is read from BENCH_DATA. */
export interface Inputs {
  data: WorldData;
  /** Diurnal windows with a peak of at most 1.1 times the mean, by trace. */
  hours: Readonly<Record<'worldcup98' | 'nasa95', readonly Window[]>>;
  /** Windows of Twitter with a peak of 1.5 to 1.7 times the mean. */
  twitter: readonly Window[];
}

/** Peak over mean: a bound of the diurnal windows (the paper's Wikipedia trace has 1.04), and bounds of Twitter's (1.54). */
const diurnalPeak = 1.1;
const erraticPeak = [1.5, 1.7] as const;

/** Throws BenchDataError. */
export async function readInputs(folder?: string): Promise<Inputs> {
  const [data, worldcup98, nasa95, twitter] = await Promise.all([
    readWorldData(folder),
    readHours('worldcup98', diurnalPeak, folder),
    readHours('nasa95', diurnalPeak, folder),
    readTwitter(erraticPeak, folder),
  ]);
  return { data, hours: { worldcup98, nasa95 }, twitter };
}

/** Requests a second: the mean of diurnal windows and the peak of Twitter's, and of language models (section 5). */
export const visionPerS = 5000;
export const languagePerS = 128;

/** What is served in an experiment. */
export interface Setting {
  load: 'worldcup98' | 'nasa95' | 'twitter' | 'constant';
  pattern: Pattern;
  /** Requests a second: the peak of Twitter's windows, and the mean of others. */
  perS: number;
  /** Fraction of requests that are strict. */
  strictShare: number;
  /** Their SLO, in multiples of the time alone; absent: the usual one. */
  sloFactor?: number;
  /** The strict model; absent: one of `strictKind`. */
  strict?: string;
  strictKind: ServedModel['kind'];
  /** The kind of best-effort models. */
  restKind: ServedModel['kind'];
  /**
   * Best effort has models of the other category of interference (`opposite`, section 5), of high interference (`high`), any but the
   * strict one (`other`), or the strict one (`same`).
   */
  rest: 'opposite' | 'high' | 'other' | 'same';
  /** The best-effort model of each period by name instead; the last one stays. */
  restNames?: readonly string[];
}

/** The paper's primary setting. */
export const primary: Omit<Setting, 'load' | 'pattern'> = {
  ...{ perS: visionPerS, strictShare: 0.5, strictKind: 'vision', restKind: 'vision', rest: 'opposite' },
};

/** A replay's inputs. */
export interface Drawn {
  world: World;
  strict: ServedModel;
  batches: readonly Batch[];
}

/** Draws a replay; the same for the same seed. */
export function draw({ data, hours, twitter }: Inputs, setting: Setting, seed: number): Drawn {
  const random = seededRandom(seed);
  const world = drawWorld(data, random);
  const { load, pattern, strictShare } = setting;
  const windows = load === 'constant' ? [constantWindow] : load === 'twitter' ? twitter : hours[load];
  const window = randomItem(windows, random);
  const most = load === 'twitter' ? Math.max(...window) : 1;
  const rates = (share: number): Float64Array => window.map((rate) => (rate / most) * setting.perS * share);
  const strict = randomItem(
    world.models.filter(({ name, kind }) =>
      setting.strict === undefined ? kind === setting.strictKind : name === setting.strict,
    ),
    random,
  );
  const rest = restAt(world, setting, strict, window.length * 1000, random);
  const streams: Stream[] = [
    { isStrict: true, rates: rates(strictShare), modelAt: () => strict },
    { isStrict: false, rates: rates(1 - strictShare), modelAt: rest },
  ];
  const batches = batchesOf(streams, pattern, world.noise, random);
  const { sloFactor } = setting;
  return { world, strict, batches: sloFactor === undefined ? batches : batches.map((one) => ({ ...one, sloFactor })) };
}

/** For so long best effort keeps its model (section 5), ms. */
const periodMs = 20_000;

/** The best-effort model at a time: another one every 20 s (section 5). */
function restAt(world: World, setting: Setting, strict: ServedModel, endMs: number, random: Random): Stream['modelAt'] {
  const isFit = ({ name, kind, isHigh }: ServedModel): boolean => {
    if (setting.rest === 'same') return name === strict.name;
    if (kind !== setting.restKind) return false;
    if (setting.rest === 'high') return isHigh;
    return setting.rest === 'opposite' ? isHigh !== strict.isHigh : name !== strict.name;
  };
  const fitting = world.models.filter(isFit);
  const named = setting.restNames?.map((name) => modelOf(world, name));
  const chosen = named ?? Array.from({ length: Math.ceil(endMs / periodMs) }, () => randomItem(fitting, random));
  return (ms) => chosen[Math.min(chosen.length - 1, Math.floor(ms / periodMs))] as ServedModel;
}

function modelOf({ models }: World, wanted: string): ServedModel {
  const found = models.find(({ name }) => name === wanted);
  if (found === undefined) throw new RangeError(`there is no model '${wanted}'`);
  return found;
}
