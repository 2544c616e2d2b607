/** Releases at the end of a run; each runs once, newest first. */
export interface Cleanup {
  add(what: string, release: () => Promise<void> | void): void;
  /** Runs all releases one after another; a failure is reported and does not stop the others. */
  run(): Promise<void>;
}

/** An empty Cleanup that tells failures to `report`. */
export function newCleanup(report: (line: string) => void): Cleanup {
  const releases: { what: string; release: () => Promise<void> | void }[] = [];
  let running: Promise<void> | undefined;
  const drain = async (): Promise<void> => {
    for (let next = releases.pop(); next; next = releases.pop()) {
      try {
        await next.release();
      } catch (error) {
        report(`Cannot clean up (${next.what}): ${(error as Error).message}`);
      }
    }
  };
  return {
    add(what, release) {
      releases.push({ what, release });
    },
    // A signal and the failure that it causes both call run: a folder must outlive the server that writes to it.
    run: () =>
      (running ??= drain().finally(() => {
        running = undefined;
      })),
  };
}
