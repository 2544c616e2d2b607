/** Does `work` unless `signal` is aborted, and no longer waits for it once it is: rejects with the signal's reason then. */
export function unlessAborted<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) {
      stop();
      return;
    }
    signal.addEventListener('abort', stop, { once: true });
    const settled = (): void => signal.removeEventListener('abort', stop);
    work().then(
      (value) => {
        settled();
        resolve(value);
      },
      (error: unknown) => {
        settled();
        reject(error as Error);
      },
    );
  });
}
