import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Target } from './target.js';

/** Time without a further event after which a save counts as complete, ms: editors write in several steps. */
const settledMs = 15;

/**
 * Calls `changed` with the time of the first event, as performance.now(), after each save of a target or its manifest. The
 * folders of single files are watched, as editors replace files.
 */
export function watchTarget({ path, isFolder, manifests }: Target, changed: (atMs: number) => void): { close(): void } {
  let timer: NodeJS.Timeout | undefined;
  let firstMs = 0;
  const event = (): void => {
    if (timer === undefined) firstMs = performance.now();
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      changed(firstMs);
    }, settledMs);
  };
  const names = new Set(manifests.map((file) => basename(file)));
  if (!isFolder) names.add(basename(path));
  const watchers: FSWatcher[] = [
    watch(dirname(path), (_, name) => {
      if (name !== null && names.has(name)) event();
    }),
  ];
  if (isFolder) {
    watchers.push(
      watch(path, { recursive: true }, (_, name) => {
        if (name?.startsWith('.git') !== true) event();
      }),
    );
  }
  // A folder that is removed: what is left to be watched is its place in the folder above.
  for (const one of watchers) one.on('error', event);
  return {
    close() {
      clearTimeout(timer);
      for (const one of watchers) one.close();
    },
  };
}
