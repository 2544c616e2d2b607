import type { ShareClient, ShareEnforcer } from './enforcers/share-enforcer.js';
import type { HostProcesses } from './host/host-processes.js';
import type { GpuContainer } from './residents.js';

/** Which process of a container an enforcer knows; all processes of one have one share. */
export class ContainerClients {
  private readonly found = new WeakMap<GpuContainer, number>();

  constructor(
    private readonly enforcer: ShareEnforcer,
    private readonly processes: HostProcesses,
  ) {}

  /** Undefined: none of its processes has made a call of CUDA yet. Rejects with ShareError. */
  async of(one: GpuContainer): Promise<ShareClient | undefined> {
    const { container, grant } = one;
    const clients = await this.enforcer.clients(grant.devices[0] ?? '', grant.slice);
    const known = clients.find(({ pid }) => pid === this.found.get(one));
    if (known !== undefined) return known;
    const launchers = new Map(container.hostPid === undefined ? [] : [[container.hostPid, container.id]]);
    for (const client of clients) {
      if ((await this.processes.containerOf(client.pid, launchers)) !== container.id) continue;
      this.found.set(one, client.pid);
      return client;
    }
    return undefined;
  }
}
