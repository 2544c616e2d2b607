import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { longestPauseMs, pauseMeter } from './longest-pause.js';
import { newDataDir, removeDataDir, startPlatform } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

/** A platform without stem cells whose event loop's pauses are measured. */
export interface MeteredPlatform {
  platform: RunningPlatform;
  /** The longest pause during some work, ms. */
  pauseOf(work: () => Promise<unknown>): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a platform with a data folder of its own. */
export async function startMeteredPlatform(): Promise<MeteredPlatform> {
  const dataDir = newDataDir();
  const meter = join(dataDir, '..', 'meter');
  const platform = await startPlatform({
    dataDir,
    flags: ['--stem-cells', 'false'],
    env: { NODE_OPTIONS: `--import=${pauseMeter}`, PAUSE_METER: meter },
  });
  return {
    platform,
    async pauseOf(work) {
      await longestPauseMs(meter);
      await work();
      return longestPauseMs(meter);
    },
    async stop() {
      await platform.stop();
      rmSync(meter, { force: true });
      removeDataDir(dataDir);
    },
  };
}
