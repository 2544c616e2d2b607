import type { Cleanup } from '../cleanup.js';
import type { Options } from '../options.js';
import type { LoadGenerator } from './load.js';
import { wrkLoad } from './wrk.js';

/** The load generator that was asked for. Throws if it is wrk and there is none. */
export async function chooseLoad(
  client: Options['client'],
  temporaryDir: string,
  cleanup: Cleanup,
): Promise<LoadGenerator> {
  if (client !== 'autocannon') {
    const wrk = await wrkLoad(temporaryDir, cleanup);
    if (wrk) return wrk;
    if (client === 'wrk') throw new Error('wrk is not on the PATH (Debian package: wrk).');
  }
  const { autocannonLoad } = await import('./autocannon.js');
  return autocannonLoad;
}
