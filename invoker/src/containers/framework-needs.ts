// What frameworks for GPUs, such as PyTorch, need of a container beyond OpenWhisk's limits.
import type { ContainerSpec } from './container-factory.js';

/** Bounds of a container. */
interface ProcessBounds {
  /** Open files of a process. */
  openFiles: number;
  /** Processes, threads included. */
  pids: number;
}

/** As OpenWhisk's `--ulimit nofile` and `--pids-limit`. */
const usual: ProcessBounds = { openFiles: 1024, pids: 1024 };
/** Loaders of data pass tensors as files, and each library starts a thread for each processor. */
const withGpu: ProcessBounds = { openFiles: 65_536, pids: 4096 };

/** Whether functions of a container may use a GPU. */
export function usesGpu({ cuda, gpu }: Pick<ContainerSpec, 'cuda' | 'gpu'>): boolean {
  return cuda || gpu !== undefined;
}

/** The bounds of a container with this spec. */
export function processBounds(spec: Pick<ContainerSpec, 'cuda' | 'gpu'>): ProcessBounds {
  return usesGpu(spec) ? withGpu : usual;
}

/** Variables that have frameworks keep compiled kernels below a folder that the function may write to. */
export function kernelCaches(folder: string): Record<string, string> {
  return {
    TRITON_CACHE_DIR: `${folder}/triton`,
    TORCHINDUCTOR_CACHE_DIR: `${folder}/torchinductor`,
    CUDA_CACHE_PATH: `${folder}/cuda`,
  };
}
