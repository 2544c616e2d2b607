import { join } from 'node:path';
import type { GpuMachine } from '../../gpu/machine.js';
import { repositoryDir } from '../../machine.js';
import { hasTorch } from './python.js';
import type { Stage } from './stage.js';

/** Surroundings of a measurement. */
export interface MeasurementGiven {
  simulated: boolean;
  /** Folder native/build. */
  native: string;
  /** The interpreter that has PyTorch; undefined: workloads on the driver API only. */
  python: string | undefined;
  /** Environment of processes that use the device. */
  env: NodeJS.ProcessEnv;
  /** Further variables of clients of MPS; undefined: there is no MPS. */
  mps: NodeJS.ProcessEnv | undefined;
  /** Folder of the results. */
  out: string;
  /** The measurement ends by itself within this time, ms. */
  budgetMs: number;
  seed: number;
  say(line: string): void;
}

/** Figures of a measurement, and a sentence for each assertion that does not hold. */
export interface Measured {
  metrics: Record<string, number>;
  failures: string[];
}

/** Time that a stage keeps for its own end, ms. */
const reserveMs = 3000;

/** Runs a measurement on the machine and reports its figures and failures as the stage's. */
export async function measured(
  stage: Stage,
  machine: GpuMachine,
  measure: (given: MeasurementGiven) => Promise<Measured>,
): Promise<void> {
  const { simulated, out, seed } = stage;
  if (machine.mpsProblem !== undefined) stage.note(`Without MPS: ${machine.mpsProblem}`);
  const python = simulated || !(await hasTorch(stage)) ? undefined : stage.python;
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
    failures.length === 0 ? Promise.resolve('all hold') : Promise.reject(new Error(failures.join('; '))),
  );
}
