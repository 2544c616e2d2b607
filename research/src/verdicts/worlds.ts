// Measured worlds that scenarios play in: a GPU type in a mode, its workloads, and its truth in one of two forms.
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import type { DeviceMode } from '@gpuwhisk/common/gpu';
import { computeSlicesOf, profilesOf } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import { Truth } from '../world/truth.js';
import type { Answer, Bracket, Form } from '../world/truth.js';
import type { Spread } from '../world/draws.js';
import { drawnAnswers, spreadOf } from '../world/draws.js';
import { leftOutErrors } from '../world/left-out.js';
import { memberKey, workloadName } from '../world/sets.js';
import type { MeasuredSet, Mode } from '../world/sets.js';
import type { Measured } from '../world/sources.js';
import { countedTruth } from './world-truth.js';
import type { AnswerCounts } from './world-truth.js';

interface WorldSource {
  source: string;
  /** GPU type and mode of the measurements. */
  gpu: string;
  mode: Mode;
  /** As policies see its GPUs. */
  gpuType: string;
  seenAs: DeviceMode;
  /** Device memory, MiB. */
  memoryMiB: number;
  /** Memory of a workload whose source tells none, MiB: assumed. */
  assumedMiB: number;
  /** Whether quotas were measured beside others; else only the time alone depends on them. */
  hasQuotas: boolean;
}

const v100 = { gpuType: 'v100-32', memoryMiB: 32_510, assumedMiB: 6144 } as const;
const a100 = { gpuType: 'a100-80', memoryMiB: 80_896, assumedMiB: 4096 } as const;

/** Worlds by name. */
const sources = {
  /** Training and inference under MPS on a V100 (KACE). */
  'kace-mps': { source: 'kace', gpu: 'v100', mode: 'mps', seenAs: 'mps', hasQuotas: true, ...v100 },
  /** The same in time slices. */
  'kace-timeslice': { source: 'kace', gpu: 'v100', mode: 'timeslice', seenAs: 'timeslice', hasQuotas: false, ...v100 },
  /** Pairs of training jobs on a V100 (Gavel, which does not say how they share it). */
  'gavel-v100': { source: 'gavel', gpu: 'v100', mode: 'unstated', seenAs: 'timeslice', hasQuotas: false, ...v100 },
  /** Pairs of training jobs on an RTX 3090 (Lucid, which does not say how they share it). */
  'lucid-rtx3090': {
    ...{ source: 'lucid', gpu: 'rtx3090', mode: 'unstated', seenAs: 'timeslice', hasQuotas: false },
    ...{ gpuType: 'rtx3090', memoryMiB: 24_576, assumedMiB: 4096 },
  },
  /**
   * Inference on slices of an A100, and on a whole one as the slice of all seven (ParvaGPU). Sets of one model were measured: mixtures
   * are extrapolated.
   */
  parvagpu: { source: 'parvagpu', gpu: 'a100-80', mode: 'mig', seenAs: 'mps', hasQuotas: false, ...a100 },
} as const satisfies Readonly<Record<string, WorldSource>>;

export type WorldName = keyof typeof sources;
export const worldNames = Object.keys(sources) as [WorldName, ...WorldName[]];

/** A workload that functions and training jobs of a run are drawn from. */
export interface Candidate {
  /** Its key in the truth. */
  workload: string;
  task: 'training' | 'inference';
  batch: number;
  /** Time of a batch or a step alone on the whole device, ms. */
  stepMs: number;
  memoryMiB: number;
  /** Part of the memory's bandwidth as the source observed it; absent: it was not. */
  memoryUtil?: number;
}

/** A truth of a world, which counts what it was asked. */
export type WorldTruth = GpuTruth & { counts: AnswerCounts };

/** A measured world. */
export interface MeasuredWorld extends WorldSource {
  name: WorldName;
  candidates: readonly Candidate[];
  /** Number of measured sets that its truth has. */
  rows: number;
  /** Its truth in draw `draw` of what is unknown. `bracket`: how a partial overlap of quotas is priced. */
  truthOf(form: Form, draw: number, bracket: Bracket): WorldTruth;
}

/** Draws of verdicts have this seed; those of tuning have another. */
const drawSeed = 46;

/**
 * The world of a name. Throws RangeError where the data lacks its source, or has too few workloads of it. `noise`: standard deviation of the logarithm
 * of a run's time.
 */
export function measuredWorld(name: WorldName, { sets, alone }: Measured, noise: number): MeasuredWorld {
  const world: WorldSource = sources[name];
  const own = sets.filter(({ source, gpu }) => source === world.source && gpu === world.gpu);
  const inMode = own.filter(({ mode }) => mode === world.mode);
  const together = new Set(
    inMode.flatMap(({ members }) => (members.length < 2 ? [] : members.map((one) => one.workload))),
  );
  const curved = new Set(
    own.flatMap(({ members }) => members.flatMap(({ workload, stretch }) => (stretch === undefined ? [] : [workload]))),
  );
  const candidates = alone.flatMap((one): Candidate[] => {
    const { workload, features } = one;
    if (one.source !== world.source || one.gpu !== world.gpu || !together.has(workload)) return [];
    // Without a time alone at shares a whole device is all that can be asked about.
    if (world.mode !== 'unstated' && !curved.has(workload)) return [];
    const { batch, task } = workloadName(workload);
    const { logMs = NaN, logMemoryGiB, memoryUtil } = features;
    const memoryMiB = logMemoryGiB === undefined ? fittingMiB(world, workload, inMode) : 1024 * Math.exp(logMemoryGiB);
    return [
      {
        ...{ workload, task, batch: Math.max(1, batch), stepMs: Math.exp(logMs) },
        memoryMiB: Math.min(Math.floor(memoryMiB), Math.floor(gpuMemoryBound * world.memoryMiB)),
        ...(memoryUtil !== undefined && { memoryUtil }),
      },
    ];
  });
  if (candidates.length < leastCandidates)
    throw new RangeError(
      `world ${name} has ${candidates.length} workloads that were measured beside others; a scenario needs ${leastCandidates}`,
    );
  const truths = new Map<Form, { truth: Answering; spread: Spread }>();
  let errors: ReturnType<typeof leftOutErrors>['errors'] | undefined;
  const truthIn = (form: Form): { truth: Answering; spread: Spread } => {
    const known = truths.get(form);
    if (known !== undefined) return known;
    const truth = remembered(new Truth(world.gpu, world.mode, form, own, alone));
    const part = { source: world.source, gpu: world.gpu, mode: world.mode };
    errors ??= leftOutErrors(part, own, alone, ['sets']).errors;
    const made = { truth, spread: spreadOf(errors, form) };
    truths.set(form, made);
    return made;
  };
  const leastShares = new Map<string, number>();
  for (const { members } of inMode)
    for (const { workload, share, stretch } of members)
      if (stretch !== undefined) leastShares.set(workload, Math.min(share, leastShares.get(workload) ?? 1));
  const leastShareOf = (workload: string): number => leastShares.get(workload) ?? 1;
  return {
    ...world,
    name,
    candidates,
    rows: inMode.length,
    truthOf(form, draw, bracket) {
      const { truth, spread } = truthIn(form);
      const largest = Math.max(...inMode.map(({ members }) => members.length));
      const answers = drawnAnswers(truth, spread, { seed: drawSeed, draw });
      const { mode, hasQuotas } = world;
      return countedTruth({ answers, mode, hasQuotas, largest, noise, bracket, leastShareOf });
    },
  };
}

type Answering = Pick<Truth, 'answer' | 'gpu' | 'mode'>;

/** Answers that a world keeps; all draws of a truth ask for the same sets. */
const mostAnswers = 200_000;

/** A truth that keeps its answers, by the order of the members. */
function remembered(truth: Truth): Answering {
  const known = new Map<string, Answer[]>();
  return {
    ...{ gpu: truth.gpu, mode: truth.mode },
    answer(members, bracket) {
      const key = `${bracket ?? ''};${members.map(memberKey).join(';')}`;
      let found = known.get(key);
      if (found === undefined) {
        if (known.size >= mostAnswers) known.clear();
        known.set(key, (found = truth.answer(members, bracket)));
      }
      return found;
    },
  };
}

/**
 * Memory of a process by the slices that it was measured in: at most the least part of one that so many processes shared. Where
 * there are no slices it is assumed.
 */
function fittingMiB(
  { assumedMiB, memoryMiB, mode, gpu }: WorldSource,
  workload: string,
  sets: readonly MeasuredSet[],
): number {
  if (mode !== 'mig') return assumedMiB;
  const fitting = sets.flatMap(({ members }) => {
    const [one] = members;
    if (one?.workload !== workload) return [];
    const slices = Math.round(one.share * allSlices);
    const slice = profilesOf(gpu).filter(({ name }) => computeSlicesOf(name) === slices);
    return slice.map((profile) => (gpuMemoryBound * profile.memoryMiB) / members.length);
  });
  return Math.min(memoryMiB, ...fitting);
}

/** Compute slices of a whole A100. */
const allSlices = 7;

/** Workloads that a world needs: those of a run, and others to learn from. */
const leastCandidates = 8;
