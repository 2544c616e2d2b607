import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { Stage } from './stage.js';

const importTimeoutMs = 60_000;

/** Facts of an interpreter with PyTorch. */
export interface TorchFacts {
  torch: string;
  executable: string;
  prefix: string;
  basePrefix: string;
  importMs: number;
  contextMs: number;
  sms: number;
}

const program = `import json, sys, time
t = time.perf_counter(); import torch; imported = time.perf_counter()
torch.ones(1, device="cuda"); torch.cuda.synchronize(); made = time.perf_counter()
print(json.dumps(dict(torch=torch.__version__, executable=sys.executable, prefix=sys.prefix, basePrefix=sys.base_prefix,
  importMs=(imported - t) * 1e3, contextMs=(made - imported) * 1e3, sms=torch.cuda.get_device_properties(0).multi_processor_count)))`;

/** Imports PyTorch and makes a context. Rejects with Python's last line if the interpreter, PyTorch or a device is missing. */
export async function torchFacts({ python }: Pick<Stage, 'python'>): Promise<TorchFacts> {
  try {
    const { stdout } = await promisify(execFile)(python, ['-c', program], { timeout: importTimeoutMs });
    return JSON.parse(stdout) as TorchFacts;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    throw new Error(stderr.trim().split('\n').at(-1) || message, { cause: error });
  }
}

/** Whether the interpreter has PyTorch and sees a device; notes the reason if not. */
export async function hasTorch(stage: Stage): Promise<boolean> {
  try {
    await torchFacts(stage);
    return true;
  } catch (error) {
    stage.note(`Without PyTorch: ${(error as Error).message}`);
    return false;
  }
}
