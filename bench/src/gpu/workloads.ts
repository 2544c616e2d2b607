// Names of the workloads that processes of the benchmark can load.

/** Workloads of native/gpu-bench, which need only the driver: bound by compute, by cache and by memory. */
export const driverWorkloads = ['matmul:256', 'matmul:512', 'matmul:1024', 'matmul:2048', 'stream:8', 'stream:256'];

/** The workloads for the stand-in, which fills memory on the CPU and is slow at it. */
export const simulatedWorkloads = ['matmul:256', 'matmul:1024', 'stream:8'];

/** Inference workloads of bench/gpu/torch_worker.py. */
export const torchWorkloads = [1, 2, 4, 8, 16, 32].flatMap((batch) => [`resnet50:${batch}`, `bert:${batch}`]);

/** The program that has a workload. */
export const kindOf = (workload: string): 'driver' | 'torch' =>
  /^(matmul|stream):/.test(workload) ? 'driver' : 'torch';

/** Workloads that are measured beside each other. */
export interface Mix {
  trainings: readonly string[];
  /** Inference workloads of each model, by size; all models have as many. */
  models: readonly (readonly string[])[];
}

const torchMix: Mix = {
  trainings: ['train-resnet50:32', 'train-bert:16', 'train-gpt1b:4'],
  models: ['resnet50', 'bert', 'decode'].map((model) => [1, 8, 32].map((batch) => `${model}:${batch}`)),
};

/** Without PyTorch, long kernels stand for training. */
const driverMix: Mix = {
  trainings: ['matmul:2048', 'stream:256'],
  models: [
    ['matmul:256', 'matmul:512', 'matmul:1024'],
    ['stream:8', 'stream:32', 'stream:128'],
  ],
};

const simulatedMix: Mix = {
  trainings: ['matmul:1024'],
  models: [
    ['matmul:256', 'matmul:512'],
    ['stream:4', 'stream:8'],
  ],
};

/** The mix for a machine. */
export function mixOf({ simulated, torch }: { simulated: boolean; torch: boolean }): Mix {
  if (torch) return torchMix;
  return simulated ? simulatedMix : driverMix;
}

/** Whether a workload is training, or stands for it, on such a machine. */
export const isTraining = (workload: string, simulated: boolean): boolean =>
  mixOf({ simulated, torch: kindOf(workload) === 'torch' }).trainings.includes(workload);
