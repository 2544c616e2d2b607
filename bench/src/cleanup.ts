/** Releases that wait for the end of a run; they run once each, newest first. */
export interface Cleanup {
  add(what: string, release: () => Promise<void> | void): void;
  /** Runs all, one after another; one that fails is reported and does not keep the others from running. */
  run(): Promise<void>;
}

/** An empty Cleanup; failures are told to `report`. */
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
    // A signal and the failure that it causes both come here: a folder must not go before the server that writes to it.
    run: () =>
      (running ??= drain().finally(() => {
        running = undefined;
      })),
  };
}
