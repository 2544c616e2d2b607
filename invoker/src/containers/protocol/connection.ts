import type { CudaContextKept } from '@gpuwhisk/common/prewarmer';
import type { Call, CallLimits, InitRequest, LostOutcome, RunRequest } from '../container-factory.js';

/** A connection to a runtime, in one protocol. */
export interface Connection {
  init(request: InitRequest, limits: CallLimits): Call;
  run(request: RunRequest, limits: CallLimits): Call;
  /** `canBatch`, `canUnload` and `endsLate` as in Container. */
  readonly canBatch: boolean;
  readonly canUnload: boolean;
  readonly endsLate: boolean;
  unload(thorough: boolean, limits: CallLimits): Call;
  check(limits: CallLimits): Call;
  /** As in Container. */
  printedSince(from: number): string[];
  readonly busyMs: number;
  readonly pid: number | undefined;
  /** As Container.cudaContext. */
  readonly cudaContext?: CudaContextKept | undefined;
  /** As Container.unfit. */
  readonly unfit?: string | undefined;
  /** Called before the container is killed: calls under way wait for `ended`. */
  close(): void;
  /** Called when the container's processes have ended: calls under way end with `lost`. */
  ended(lost: LostOutcome): void;
  /** Called when all of the container's output has been read. */
  drained(): void;
}

/** A call that is rejected with `reason`, as the present state does not allow it. */
export function refused(reason: string): Call {
  return { outcome: Promise.reject(new Error(reason)), logs: Promise.resolve([]) };
}

/** A promise with its resolver. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve(value: T): void;
}

/** A promise that is resolved from outside. */
export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
