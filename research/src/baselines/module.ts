// The policy module of all baselines: research/build.mjs makes one file of it, research/dist/baselines.mjs.
import { degradationPlan } from '@gpuwhisk/gpu/algorithms/smore/degradation-plan';
import { learnedSlices } from '@gpuwhisk/gpu/algorithms/protean/slice-model';
import type { ModuleStage, PolicyModule } from '@gpuwhisk/gpu/plugin';
import {
  deadlineDegradationDefaults,
  deadlineDegradationPlan,
  deadlineUseDefaults,
  deadlineUsePlan,
} from './deadline-plan.js';
import { edfDegradation } from './edf-degradation.js';
import { edfUtil } from './edf-util.js';
import { elasticflow } from './elasticflow.js';
import { faashareLiteral } from './faashare-literal.js';
import { faasharePaper, paperPlan } from './faashare-paper.js';
import { fastGshare } from './fast-gshare.js';
import { fcfs } from './fcfs.js';
import { fluidfaas } from './fluidfaas.js';
import { inflessDefaults, inflessScale } from './infless.js';
import { literalPlan } from './literal-plan.js';
import { longestFirst as longestFirstPolicy } from './longest-first.js';
import { memoryPriority } from './memory-priority.js';
import { mqfqDefaults, mqfqPlan, mqfqSticky } from './mqfq.js';
import { mpsEqual } from './mps-equal.js';
import { leastMemoryFirst, leastRemainingFirst, longestFirst, meetableFirst } from './orders.js';
import {
  elasticflow2x,
  fastGshare2x,
  fcfs2x,
  fluidfaas2x,
  longestFirst2x,
  memoryPriority2x,
  shortestRemaining2x,
  tgs2x,
  timePriority2x,
  uncapped2x,
} from './oversubscribing.js';
import { atRandom, largestFree, mostGiven } from './places.js';
import { literalGeometry, literalGeometryDefaults } from './protean-literal-geometry.js';
import { byTagsLiteral, proteanLiteral } from './protean-literal.js';
import { random } from './random.js';
import { fillingUncapped, fillingUpTo, leftOver, overcommitDefaults } from './shares.js';
import { shortestRemaining } from './shortest-remaining.js';
import {
  mpsLimit,
  shortestFirst2,
  staticSlices,
  strictFirst1,
  strictFirst2,
  strictFirst3,
  strictFirst4,
} from './simple-rivals.js';
import { migSizes, mostEfficient } from './slo-shares.js';
import { literalDegradation, smoreLiteral } from './smore-literal.js';
import { tgs } from './tgs.js';
import { timePriority } from './time-priority.js';
import { uncapped } from './uncapped.js';

/** A stage whose settings have the type of their defaults. */
function settable<Stage, Given extends Readonly<Record<string, number>>>(
  settings: Given,
  make: (needs: Parameters<ModuleStage<Stage>['make']>[0], settings: Given) => Stage,
): ModuleStage<Stage> {
  return { settings, make: (needs, given) => make(needs, { ...settings, ...given }) };
}

const module: PolicyModule = {
  version: 1,
  stages: {
    order: {
      'meetable-first': { make: () => meetableFirst },
      'longest-first': { make: () => longestFirst },
      'least-remaining-first': { make: () => leastRemainingFirst },
      'least-memory-first': { make: () => leastMemoryFirst },
    },
    share: {
      'filling-up-to': settable(overcommitDefaults, (_, set) => fillingUpTo(set)),
      'filling-uncapped': settable(overcommitDefaults, (_, set) => fillingUncapped(set)),
      'left-over': settable(overcommitDefaults, (_, set) => leftOver(set)),
      'mig-sizes': settable(overcommitDefaults, ({ predictorOf }, set) => migSizes(predictorOf, set)),
      'most-efficient': settable(overcommitDefaults, ({ predictorOf }, set) => mostEfficient(predictorOf, set)),
    },
    place: {
      'largest-free': { make: () => largestFree },
      'most-given': { make: () => mostGiven },
      'protean-literal': { make: ({ sliceSlowdowns }) => byTagsLiteral(sliceSlowdowns), learnsSlices: true },
      random: { make: () => atRandom },
    },
    plan: {
      'by-degradation-literal': {
        make: ({ degradationsOf }) => degradationPlan(degradationsOf, literalDegradation, undefined),
        asksForDegradations: true,
      },
      'by-deadline-degradation': {
        ...settable(deadlineDegradationDefaults, ({ degradationsOf }, set) =>
          deadlineDegradationPlan(degradationsOf, set),
        ),
        asksForDegradations: true,
      },
      'by-deadline-use': settable(deadlineUseDefaults, (_, set) => deadlineUsePlan(set)),
      'mqfq-sticky': settable(mqfqDefaults, (_, set) => mqfqPlan(set)),
      'sub-queues-literal': { make: ({ predictions }) => literalPlan(predictions) },
      'sub-queues-paper': { make: (needs) => paperPlan(needs) },
    },
    geometry: {
      'protean-literal': {
        ...settable(literalGeometryDefaults, ({ sliceSlowdowns }, set) =>
          literalGeometry(set, learnedSlices(sliceSlowdowns)),
        ),
        learnsSlices: true,
      },
    },
    scale: {
      infless: settable(inflessDefaults, (_, set) => inflessScale(set)),
    },
  },
  policies: {
    'faashare-literal': faashareLiteral,
    'smore-literal': smoreLiteral,
    elasticflow,
    tgs,
    fluidfaas,
    'fast-gshare': fastGshare,
    'mps-equal': mpsEqual,
    fcfs,
    'time-priority': timePriority,
    'memory-priority': memoryPriority,
    'longest-first': longestFirstPolicy,
    'shortest-remaining': shortestRemaining,
    uncapped,
    random,
    'edf-util': edfUtil,
    'edf-degradation': edfDegradation,
    'strict-first-1': strictFirst1,
    'strict-first-2': strictFirst2,
    'strict-first-3': strictFirst3,
    'strict-first-4': strictFirst4,
    'static-4g3g': staticSlices,
    'shortest-first-2': shortestFirst2,
    'mps-limit': mpsLimit,
    'protean-literal': proteanLiteral,
    'faashare-paper': faasharePaper,
    'mqfq-sticky': mqfqSticky,
    'elasticflow-2x': elasticflow2x,
    'tgs-2x': tgs2x,
    'fluidfaas-2x': fluidfaas2x,
    'fast-gshare-2x': fastGshare2x,
    'fcfs-2x': fcfs2x,
    'time-priority-2x': timePriority2x,
    'memory-priority-2x': memoryPriority2x,
    'longest-first-2x': longestFirst2x,
    'shortest-remaining-2x': shortestRemaining2x,
    'uncapped-2x': uncapped2x,
  },
};
export default module;
