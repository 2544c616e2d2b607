/** A save, or a request to run without one. */
export interface Save {
  /** performance.now() of its first event. */
  atMs: number;
  /** Whether it runs even if nothing has changed. */
  always: boolean;
}

/**
 * Returns a function that calls `start` for one save at a time, and drops all but the newest of those that come meanwhile.
 * `start` is told whether a newer save waits; it may then return at once.
 */
export function newestOnly(
  start: (save: Save, isSuperseded: () => boolean) => Promise<void>,
  fail: (error: unknown) => void,
): (save: Save) => void {
  let pending: Save | undefined;
  let isBusy = false;
  const startPending = async (): Promise<void> => {
    isBusy = true;
    while (pending !== undefined) {
      const save = pending;
      pending = undefined;
      await start(save, () => {
        if (pending === undefined) return false;
        pending.always ||= save.always;
        return true;
      });
    }
    isBusy = false;
  };
  return ({ atMs, always }) => {
    pending = { atMs, always: always || pending?.always === true };
    if (!isBusy) startPending().catch(fail);
  };
}
