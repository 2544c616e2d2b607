import { openMachine } from '../../gpu/machine.js';
import type { Stage } from './stage.js';
import { measureInjection } from './injection.js';
import { measured } from './measured.js';

/** Injection into processes with a CUDA context, and how soon they are ready again. */
export async function injection(stage: Stage): Promise<void> {
  const machine = await openMachine({ ...stage, temporaryDir: stage.work });
  await measured(stage, machine, measureInjection);
}
