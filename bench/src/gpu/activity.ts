import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { repositoryDir } from '../paths.js';

/** Parts of the time and of the bandwidth that were used between two looks; absent where the chip does not tell. */
export interface Activity {
  smActivity?: number;
  dramActivity?: number;
  powerW?: number;
}

/** Looks at the first device. */
export interface ActivityMeter {
  driver: string;
  /** Since the last look. */
  look(): Promise<Activity>;
  close(): Promise<void>;
}

interface Nvml {
  open(path: string, simulator: string): Promise<{ session: object; driver: string }>;
  sample(session: object): Promise<Activity[]>;
  close(session: object): Promise<void>;
}

/**
 * The driver's management library, through native/nvml: GPM's figures from Hopper on. `simulator` is the stand-in's
 * socket, or empty. Rejects where there is no such library.
 */
export async function openActivity(simulator: string): Promise<ActivityMeter> {
  const addon = join(repositoryDir, 'native/build/nvml.node');
  if (!existsSync(addon)) throw new Error('native/nvml was not built.');
  const nvml = createRequire(import.meta.url)(addon) as Nvml;
  const library = simulator === '' ? '' : join(repositoryDir, 'native/build/cudasim/');
  const { session, driver } = await nvml.open(`${library}libnvidia-ml.so.1`, simulator);
  return {
    driver,
    async look() {
      const [first = {}] = await nvml.sample(session);
      const { smActivity, dramActivity, powerW } = first;
      return {
        ...(smActivity !== undefined && { smActivity }),
        ...(dramActivity !== undefined && { dramActivity }),
        ...(powerW !== undefined && { powerW }),
      };
    },
    close: () => nvml.close(session),
  };
}
