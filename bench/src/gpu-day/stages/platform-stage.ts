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

/** Runs a function. Rejects unless it succeeds. */
export async function succeed({ platform }: PlatformStage, ...args: Parameters<KitPlatform['run']>): Promise<Run> {
  const run = await platform.run(...args);
  assert(run.success, `${args[0]} failed: ${JSON.stringify(run.result).slice(0, 300)}`);
  return run;
}
