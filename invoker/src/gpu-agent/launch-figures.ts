import type { Logger } from '@gpuwhisk/common/logging';
import type { ContainerClients } from './container-clients.js';
import type { ShareEnforcer } from './enforcers/share-enforcer.js';
import type { Residents } from './residents.js';

/** What noteLaunches works with. */
export interface LaunchParts {
  enforcer: ShareEnforcer;
  residents: Residents;
  clients: ContainerClients;
  logger: Logger;
}

/** Notes what the processes of each container have launched, where launches are counted. Never rejects. */
export async function noteLaunches({ enforcer, residents, clients, logger }: LaunchParts): Promise<void> {
  if (enforcer.launches === undefined) return;
  for (const one of residents.all()) {
    // Several devices are held by MPS alone, which counts nothing.
    if (one.ending || one.grant.devices.length > 1) continue;
    try {
      const client = await clients.of(one);
      one.launches = client === undefined ? undefined : await enforcer.launches(client);
    } catch (error) {
      one.launches = undefined; // Its process has just ended, or the enforcer is out of order, which is told elsewhere.
      logger.debug({ container: one.container.id, error: String(error) }, 'no figures of launches');
    }
  }
}
