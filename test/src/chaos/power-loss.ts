import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../engines/synced-files.c', import.meta.url));

/** Records which parts of their files processes have synced. */
export interface SyncedFiles {
  /** Environment variables for the processes to be watched. */
  env: Record<string, string>;
  /**
   * Truncates files below `folder` whose names end in `suffix` to their synced length, as a power loss may. All
   * processes that write there must have ended. Returns the number of bytes removed.
   */
  losePower(folder: string, suffix: string): number;
}

/** Builds the library that watches processes, in `folder`. */
export function syncedFiles(folder: string): SyncedFiles {
  const library = join(folder, 'synced-files.so');
  const notes = join(folder, 'synced-files');
  const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-o', library, source]);
  if (built.status !== 0) throw new Error(built.stderr.toString());
  const lengths = (): Map<string, number> => {
    const lines = existsSync(notes) ? readFileSync(notes, 'utf8').trimEnd().split('\n') : [];
    return new Map(lines.map((line) => [line.slice(line.indexOf(' ') + 1), Number.parseInt(line, 10)]));
  };
  return {
    env: { LD_PRELOAD: library, SYNCED_FILES: notes },
    losePower(below, suffix) {
      const synced = lengths();
      let lost = 0;
      for (const name of readdirSync(below, { recursive: true, encoding: 'utf8' })) {
        const file = join(below, name);
        if (!name.endsWith(suffix) || !statSync(file).isFile()) continue;
        const { size } = statSync(file);
        const kept = Math.min(size, synced.get(file) ?? 0);
        lost += size - kept;
        truncateSync(file, kept);
      }
      return lost;
    },
  };
}
