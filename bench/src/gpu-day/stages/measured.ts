import { join } from 'node:path';
import { openMachine } from '../../gpu/machine.js';
import type { StageGiven, StageResult } from '../../gpu/stage.js';
import { repositoryDir } from '../../machine.js';
import type { Stage } from './stage.js';

/** Time that a stage keeps for its own end, ms. */
const reserveMs = 3000;

/** Runs a measurement on the machine, and reports its figures and failures as the stage's. */
export async function measured(stage: Stage, measure: (given: StageGiven) => Promise<StageResult>): Promise<void> {
  const { simulated, out, seed, python, work } = stage;
  const machine = await openMachine({ ...stage, temporaryDir: work });
  if (machine.mpsProblem !== undefined) stage.note(`Without MPS: ${machine.mpsProblem}`);
  const { metrics, failures } = await measure({
    simulated,
    native: join(repositoryDir, 'native', 'build'),
    python,
    env: machine.env,
    mps: machine.mpsEnv,
    out,
    budgetMs: Math.max(0, stage.leftMs() - reserveMs),
    seed,
    say: (line) => void process.stderr.write(`${line}\n`),
  });
  for (const [name, value] of Object.entries(metrics)) stage.metric(name, value);
  await stage.check('assertions of the measurement', reserveMs, () =>
    failures.length === 0 ? Promise.resolve('all hold') : Promise.reject(new Error(failures.join(' '))),
  );
}
