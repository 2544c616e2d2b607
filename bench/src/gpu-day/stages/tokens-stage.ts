import { openMachine } from '../../gpu/machine.js';
import type { Stage } from './stage.js';
import { measured } from './measured.js';
import { measureTokens } from './tokens.js';

/** Cost and effect of kernel tokens. */
export async function tokens(stage: Stage): Promise<void> {
  const machine = await openMachine({ ...stage, temporaryDir: stage.work });
  await measured(stage, machine, measureTokens);
}
