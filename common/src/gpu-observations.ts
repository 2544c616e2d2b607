// What agents and controllers tell each other of runs that they have seen.

/** A fault of one function that ended the runs of all clients of an MPS server. */
export interface SharedFault {
  /** Epoch ms. */
  at: number;
  /** UUID of the device, or of the slice. */
  place: string;
  /** The versions of functions that ran there, `/namespace/action`: of several, the driver does not tell which has faulted. */
  functions: { action: string; version: string }[];
}

/** Medians of warm runs alone at 100 % of the SMs, at least two of each size of input, ms. */
export interface AloneTimes {
  /** With inputs of the activation's size, by the bytes of its parameters; absent: not measured. */
  ms?: number;
  /** By the sizes that the function reports itself: the largest size of a bucket, which begins above its half, and the time. */
  reported?: [number, number][];
}
