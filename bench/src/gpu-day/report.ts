import { rounded } from '../report.js';
import type { Check } from './stages/stage.js';

/**
 * State of a stage: `cut off`: it was ended at its time limit; `crashed`: its process ended without a result; `not run`: no
 * time was left.
 */
export type StageState = 'passed' | 'failed' | 'cut off' | 'crashed' | 'not run';

/** Findings of a stage; complete unless the state is `cut off` or `crashed`. */
export interface StageReport {
  stage: string;
  state: StageState;
  tookS: number;
  checks: Check[];
  /** Flat figures, as in bench/results. */
  metrics: Record<string, number>;
  /** Facts in words, one a line. */
  notes: string[];
  /** First line of the error that ended the stage, or of the reason against its run. */
  problem?: string;
}

/** All that a run of the kit leaves in `gpu-day.json`. */
export interface KitReport {
  commit: string;
  /** Day of the last run, UTC. */
  date: string;
  device: string;
  driver: string;
  simulated: boolean;
  seed: number;
  tookS: number;
  /** What the run left or changed on the machine; empty: nothing. */
  left: string[];
  stages: StageReport[];
}

/** The error of a stage in one line: its problem, or its first failed check. */
export function firstError({ problem, checks }: StageReport): string | undefined {
  const failed = checks.find(({ passed }) => !passed);
  const text = problem ?? (failed && `${failed.name}: ${failed.detail}`);
  return text?.split('\n')[0]?.slice(0, 300);
}

/** Whether every stage ended and passed, and nothing was left. */
export const isClean = ({ stages, left }: KitReport): boolean =>
  left.length === 0 && stages.every(({ state }) => state === 'passed');

const maxFigures = 10;

function stageLines(report: StageReport): string[] {
  const { stage, state, tookS, checks, metrics } = report;
  const passed = checks.filter((check) => check.passed).length;
  const counted = checks.length === 0 ? '' : `, ${passed} of ${checks.length} checks`;
  const figures = Object.entries(metrics).slice(0, maxFigures);
  const failures = checks.filter((check) => !check.passed);
  const error = report.problem === undefined ? [] : [`    ${firstError(report)}`];
  return [
    `${stage.padEnd(11)} ${state.toUpperCase()} in ${tookS.toFixed(0)} s${counted}`,
    ...error,
    ...failures.map(({ name, detail }) => `    FAILED ${name}: ${detail.split('\n')[0]?.slice(0, 300)}`),
    ...figures.map(([name, value]) => `    ${name.padEnd(36)} ${rounded(value)}`),
  ];
}

/** A page that tells a person how a run went: each stage with its state, failures and first figures. */
export function pageOf(report: KitReport): string {
  const { device, driver, commit, date, simulated, tookS, left, stages } = report;
  return [
    `GPU kit, commit ${commit.slice(0, 12)}, ${date}, ${tookS.toFixed(0)} s`,
    `${device}, driver ${driver}${simulated ? '. SIMULATED: no figure is of a GPU.' : ''}`,
    '',
    ...stages.flatMap(stageLines),
    '',
    ...(left.length === 0 ? ['Nothing was left running; the device is as before.'] : left.map((one) => `LEFT: ${one}`)),
    isClean(report) ? 'All stages passed.' : 'Not all stages passed: see above, and log.txt.',
  ].join('\n');
}
