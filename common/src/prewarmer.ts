/**
 * How a CUDA context is kept from function to function: by checkpoints of the driver, by a reset of the stand-in driver, for
 * functions of one owner, or not at all.
 */
export const cudaContextWays = ['checkpoint', 'reset', 'owner', 'ends'] as const;
export type CudaContextKept = (typeof cudaContextWays)[number];

/** A container that is ready for the next action that wants what it has; or, with `action`, the snapshot of a function. */
export interface Prewarmer {
  /** The invoker's, such as `invoker0`. */
  invoker: string;
  container: string;
  kind: string;
  memoryMiB: number;
  /** Modules that it has loaded. */
  imports: readonly string[];
  /** Whether a CUDA context was to be made ahead. */
  cuda: boolean;
  /** How its CUDA context is kept from function to function; undefined if there is none, or its runtime does not tell. */
  cudaContext?: CudaContextKept;
  /** The function whose further containers are copies of its loaded state; undefined of a container. */
  action?: string;
  /** The namespace that the function runs for; undefined of a container. */
  namespace?: string;
  /**
   * Why no template could be made of it, so that pairs with its modules are no copies, or why the function has no snapshot;
   * undefined otherwise.
   */
  unfit?: string;
  /** When it was made, epoch ms. */
  since: number;
  /** The MSContainer that it lies in with others; absent where it has a PID namespace of its own. */
  msContainer?: string;
  /** Its process id as functions see it who run in it; undefined where its runtime does not tell. */
  pid?: number;
}

/** What learned imports saved of a start: a part of annotation `coldStart`, which has `totalMs` only besides without a GPU. */
export interface SavedStart {
  /** Shortest known time of the function's imports that were loaded already, or the time of a load of its code, ms. */
  savedMs: number;
  /**
   * How they came to be loaded: `learned` in a process that was made ahead and imported them, `restored` in one that was made
   * ahead as a copy of a template, or in a copy of the loaded function, `rolled back` in one that another function of the namespace had before.
   */
  savedBy: 'learned' | 'restored' | 'rolled back';
}
