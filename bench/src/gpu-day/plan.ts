import type { StageReport } from './report.js';

/** A stage of the kit and its time limit, s; a stage without a limit takes all remaining time. */
export interface StageSettings {
  name: string;
  limitS?: number;
}

/** Stages in the order of their worth: what a short loan of a GPU must tell first. */
export const stageOrder: readonly StageSettings[] = [
  { name: 'facts', limitS: 30 },
  { name: 'platform', limitS: 120 },
  { name: 'injection', limitS: 60 },
  { name: 'tokens', limitS: 60 },
  { name: 'colocation' },
];

/** The stage that each later run continues, because its samples accumulate. */
const continued = 'colocation';
/** Time, s, for samples of the stand-in: they show that the stage works, and further ones show no more. */
const simulatedS = 15;
/** The shortest time, s, in which a stage can tell anything. */
const shortestS = 8;

/**
 * The stages of the next run, in order: those that `wanted` names; else all in a first run; else those that have not passed,
 * and then co-location, which continues. Throws RangeError for an unknown name.
 */
export function stagesOf(earlier: readonly StageReport[], wanted?: readonly string[]): StageSettings[] {
  const unknown = wanted?.find((name) => !stageOrder.some((stage) => stage.name === name));
  if (unknown !== undefined) throw new RangeError(`There is no stage '${unknown}'.`);
  const passed = new Set(earlier.filter(({ state }) => state === 'passed').map(({ stage }) => stage));
  return stageOrder.filter(({ name }) => wanted?.includes(name) ?? (!passed.has(name) || name === continued));
}

/** Time limit of a stage, s, when `leftS` remain of the budget; undefined if that is too little to begin. */
export function limitOf({ limitS }: StageSettings, leftS: number, simulated: boolean): number | undefined {
  if (leftS < shortestS) return undefined;
  return Math.min(limitS ?? (simulated ? simulatedS : leftS), leftS);
}

/** Earlier reports with those of this run in their place, in the order of worth. */
export function merged(earlier: readonly StageReport[], now: readonly StageReport[]): StageReport[] {
  return stageOrder.flatMap(({ name }) => {
    const found = now.find(({ stage }) => stage === name) ?? earlier.find(({ stage }) => stage === name);
    return found === undefined ? [] : [found];
  });
}
