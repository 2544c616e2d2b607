import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanup } from '../../cleanup.js';

/** One assertion of a stage. `detail`: the reason of a failure, or the observed values. */
export interface Check {
  name: string;
  passed: boolean;
  detail: string;
}

/** Settings of a stage's process, as the runner passes them. */
export interface StageOptions {
  stage: string;
  simulated: boolean;
  /** Folder of the results. */
  out: string;
  /** A folder of the stage's own, removed by the runner. */
  work: string;
  /** Time until the runner ends the process, ms. */
  budgetMs: number;
  seed: number;
  /** The interpreter for PyTorch: a name on PATH, or a path. */
  python: string;
}

/** What a stage works with. */
export interface Stage extends StageOptions {
  /** Time left of the budget, ms. */
  leftMs(): number;
  /**
   * Makes an assertion: it holds if `body` resolves within `limitMs`. Its value is the detail. Resolves with whether it holds,
   * so that a stage continues after a failure.
   */
  check(name: string, limitMs: number, body: () => Promise<string>): Promise<boolean>;
  metric(name: string, value: number): void;
  /** Notes a fact in words. */
  note(line: string): void;
  cleanup: Cleanup;
}

/** Findings that a stage's process reports as it makes them. */
export type Finding =
  | { type: 'check'; check: Check }
  | { type: 'metric'; name: string; value: number }
  | { type: 'note'; line: string }
  /** The end of the stage: `problem` if an error ended it. */
  | { type: 'end'; problem?: string };

/** A stage whose findings go to `tell`. */
export function newStage(options: StageOptions, tell: (finding: Finding) => void, cleanup: Cleanup): Stage {
  const beganMs = performance.now();
  const leftMs = (): number => Math.max(0, options.budgetMs - (performance.now() - beganMs));
  return {
    ...options,
    cleanup,
    leftMs,
    async check(name, limitMs, body) {
      const timer = new AbortController();
      const withinMs = Math.min(limitMs, leftMs());
      const late = sleep(withinMs, undefined, { signal: timer.signal }).then(() =>
        Promise.reject(new Error(`no result within ${Math.round(withinMs)} ms`)),
      );
      try {
        const detail = await Promise.race([body(), late]);
        tell({ type: 'check', check: { name, passed: true, detail } });
        return true;
      } catch (error) {
        tell({ type: 'check', check: { name, passed: false, detail: (error as Error).message } });
        return false;
      } finally {
        timer.abort();
        await late.catch(() => undefined); // The rejection was reported above, or is the abort.
      }
    },
    metric(name, value) {
      if (Number.isFinite(value)) tell({ type: 'metric', name, value });
      else tell({ type: 'note', line: `The figure ${name} is ${value}.` });
    },
    note: (line) => tell({ type: 'note', line }),
  };
}

/** Throws Error with this message unless the condition holds. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}
