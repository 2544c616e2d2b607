import type { GuestKind, KitPlatform, Run } from './platform-client.js';
import { assert } from './stage.js';
import type { Stage } from './stage.js';

/** What the checks of this stage work with. */
export interface PlatformStage {
  stage: Stage;
  platform: KitPlatform;
  /** The guest programs in use. */
  kind: GuestKind;
  /** Whether the device is shared by MPS; if not, processes take turns. */
  mps: boolean;
}

/** A run's result or error in one line, with the last line of its log. */
export function errorOf({ result, logs }: Run): string {
  const last = logs.at(-1);
  return JSON.stringify(result).slice(0, 200) + (last === undefined ? '' : ` (log: ${last.slice(0, 200)})`);
}

/** Runs a function. Rejects unless it succeeds. */
export async function succeed({ platform }: PlatformStage, ...args: Parameters<KitPlatform['run']>): Promise<Run> {
  const run = await platform.run(...args);
  assert(run.success, `${args[0]} failed: ${errorOf(run)}`);
  return run;
}
