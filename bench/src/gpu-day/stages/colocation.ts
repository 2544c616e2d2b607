import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { flatMetrics } from '../../report.js';
import { coLocationMetrics, measurePlan } from '../../gpu/co-location.js';
import { hasTorch, openActivity, type ActivityMeter, type GpuMachine } from '../../gpu/machine.js';
import { runStage, samplesFile, type StageGiven, type StageResult } from '../../gpu/stage.js';
import { mixOf } from '../../gpu/workloads.js';

/** Sets of a plan that a stage never comes to the end of: the budget ends it. */
const endlessly = 2000;
/** Time of a sample, s. */
const seconds = 1;
const simulatedSeconds = 0.15; // Activity takes 100 ms.

/**
 * Measures training beside inference, and sets of inferences, until the budget is spent. Samples are appended to the
 * device's file in `out`, from which a later call goes on.
 */
export function measureColocation(given: StageGiven): Promise<StageResult> {
  return runStage(given, async (machine, end, { metrics, failures }) => {
    const { out, seed, say, simulated } = given;
    const meter = await openMeter(machine, say);
    try {
      await mkdir(out, { recursive: true });
      const found = await measurePlan({
        machine,
        mix: mixOf({ simulated, torch: await hasTorch(machine, say) }),
        count: endlessly,
        seed,
        seconds: simulated ? simulatedSeconds : seconds,
        path: join(out, samplesFile(machine)),
        end,
        look: async () => (await meter?.look()) ?? {},
        say,
      });
      Object.assign(metrics, flatMetrics(coLocationMetrics(found)));
      const failed = found.samples.filter(({ failed }) => failed !== undefined);
      const [first] = failed;
      if (first !== undefined) {
        failures.push(
          `${failed.length} of ${found.samples.length} samples failed, first ${first.id}: ${first.failed ?? ''}.`,
        );
      }
      if (found.added === 0 && found.samples.length < found.planned)
        failures.push(`No sample was measured in ${given.budgetMs} ms.`);
    } finally {
      await meter?.close();
    }
  });
}

async function openMeter(machine: GpuMachine, say: (line: string) => void): Promise<ActivityMeter | undefined> {
  try {
    return await openActivity(machine);
  } catch (error) {
    say(`Without activity: ${(error as Error).message}`);
    return undefined;
  }
}
