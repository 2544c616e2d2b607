import { openMachine } from '../../gpu/machine.js';
import type { Stage } from './stage.js';
import { measureColocation } from './colocation.js';
import { measured } from './measured.js';

/** Training and inference side by side, in all of the time that is left. */
export async function colocation(stage: Stage): Promise<void> {
  const machine = await openMachine({ ...stage, temporaryDir: stage.work });
  await measured(stage, machine, measureColocation);
}
