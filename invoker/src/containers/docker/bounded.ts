/** Work is refused: too much of it waits. */
export class TooMuchWaits extends Error {
  override name = 'TooMuchWaits';
}

/** Runs at most `atOnce` works at a time, in their order; with `maxWaiting` waiting the next is rejected with TooMuchWaits. */
export function bounded(atOnce: number, maxWaiting: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  const leave = (): void => {
    running--;
    waiting.shift()?.();
  };
  const enter = (): Promise<void> | undefined => {
    if (running < atOnce && waiting.length === 0) {
      running++;
      return undefined;
    }
    return new Promise((resolve) => {
      waiting.push(() => {
        running++;
        resolve();
      });
    });
  };
  return async (work) => {
    if (waiting.length >= maxWaiting) throw new TooMuchWaits(`${maxWaiting} wait already.`);
    await enter();
    return work().finally(leave);
  };
}
