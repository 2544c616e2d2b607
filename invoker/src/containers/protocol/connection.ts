import type { Call, CallLimits, InitRequest, RunRequest } from '../container-factory.js';

/** How the invoker speaks with a runtime. */
export interface Connection {
  init(request: InitRequest, limits: CallLimits): Call;
  run(request: RunRequest, limits: CallLimits): Call;
  /** As a container's, all three. */
  readonly canBatch: boolean;
  readonly canUnload: boolean;
  readonly endsLate: boolean;
  unload(thorough: boolean, limits: CallLimits): Call;
  check(limits: CallLimits): Call;
  readonly busyMs: number;
  readonly pid: number | undefined;
  /** The container is to be killed: calls under way wait for `ended`. */
  close(): void;
  /** The container's processes have ended: calls under way are lost. */
  ended(oomKilled: boolean): void;
  /** All that the container printed has been read. */
  drained(): void;
}

/** The answer to a call that the caller must not make in this state. */
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
