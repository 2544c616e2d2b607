const barWidth = 30;
const everyMs = 100;

/** Where a long work stands. */
export interface Progress {
  /** Another part of the work begins, with so many things in it (undefined: nobody knows). */
  begin(part: string, total: number | undefined): void;
  step(count?: number): void;
  /** Removes what is on the terminal. */
  end(): void;
}

/** A bar on a terminal; nothing where `stream` is none. */
export function createProgress(stream: NodeJS.WriteStream): Progress {
  if (stream.isTTY !== true) return { begin: () => undefined, step: () => undefined, end: () => undefined };
  let part = '';
  let total: number | undefined;
  let done = 0;
  let drawnMs = 0;
  const draw = (): void => {
    drawnMs = performance.now();
    const filled = total === undefined ? 0 : Math.round((barWidth * Math.min(done, total)) / Math.max(1, total));
    const bar = total === undefined ? '' : `[${'#'.repeat(filled)}${' '.repeat(barWidth - filled)}] `;
    stream.write(`\r\u001b[K${part.padEnd(12)}${bar}${done}${total === undefined ? '' : `/${total}`}`);
  };
  return {
    begin(name, count) {
      [part, total, done] = [name, count, 0];
      draw();
    },
    step(count = 1) {
      done += count;
      if (performance.now() - drawnMs >= everyMs) draw();
    },
    end: () => void stream.write('\r\u001b[K'),
  };
}
