import type { Placement, Resident } from '@gpuwhisk/common/gpu';
import type { Container, GpuGrant } from '../containers/container-factory.js';
import { placeOf } from '../pool/memory-budget.js';
import { grantKey, grantOf } from './gpu-desk.js';
import type { GpuUser } from './gpu-desk.js';

/** A container with a GPU, and what is known of it. */
export interface GpuContainer {
  container: Container;
  grant: GpuGrant;
  /** Who runs in it, by activation. */
  readonly users: Map<string, GpuUser>;
  /** Who ran in it last; undefined before the first. */
  lastUser: GpuUser | undefined;
  /** Device memory that it was last seen to hold, MiB; undefined before the first look. */
  measuredMiB: number | undefined;
  /** What it held before it ran anything, MiB. */
  baselineMiB: number | undefined;
  /** Looks in a row at which it held more than it may. */
  overruns: number;
}

/** The containers of this node that have a GPU, and the activations that have one or will. */
export class Residents {
  private readonly containers = new Map<string, GpuContainer>();
  /** Of activations that were let in and do not run yet. */
  private readonly admitted = new Map<string, { user: GpuUser; grant: GpuGrant }>();
  /** Container of each activation that runs. */
  private readonly running = new Map<string, string>();
  /** Containers that were added so far. */
  added = 0;

  /** Takes a container that has started; it leaves by itself when it ends. */
  add(container: Container, grant: GpuGrant, left: () => void): void {
    this.added++;
    this.containers.set(container.id, {
      container,
      grant,
      users: new Map(),
      lastUser: undefined,
      measuredMiB: undefined,
      baselineMiB: undefined,
      overruns: 0,
    });
    void container.exited.then(() => {
      this.containers.delete(container.id);
      left();
    });
  }

  /** Promises an activation its memory until it began or ended. */
  admit(user: GpuUser, placement: Placement): void {
    this.admitted.set(user.activationId, { user, grant: grantOf(placement) });
  }

  /** Whether a container that runs an activation's function, or is promised to it, may run it too. */
  canJoin(user: GpuUser, placement: Placement): boolean {
    const key = grantKey(grantOf(placement));
    const isAlike = (other: GpuUser | undefined, grant: GpuGrant): boolean =>
      other?.action === user.action && other.namespace === user.namespace && grantKey(grant) === key;
    return (
      this.all().some(({ users, lastUser, grant }) => users.size > 0 && isAlike(lastUser, grant)) ||
      [...this.admitted.values()].some((one) => isAlike(one.user, one.grant))
    );
  }

  /** An activation runs in a container. */
  began(user: GpuUser, containerId: string): void {
    const { activationId } = user;
    this.admitted.delete(activationId);
    const one = this.containers.get(containerId);
    if (one === undefined) return;
    this.running.set(activationId, containerId);
    one.users.set(activationId, user);
    one.lastUser = user;
  }

  /** An activation is over, whether it ran or not. */
  ended({ activationId }: GpuUser): void {
    this.admitted.delete(activationId);
    const containerId = this.running.get(activationId);
    this.running.delete(activationId);
    if (containerId !== undefined) this.containers.get(containerId)?.users.delete(activationId);
  }

  get(containerId: string): GpuContainer | undefined {
    return this.containers.get(containerId);
  }

  all(): GpuContainer[] {
    return [...this.containers.values()];
  }

  on(device: string): GpuContainer[] {
    return this.all().filter((one) => one.grant.device === device);
  }

  /** Memory of a device or slice that runs have, or that was promised, MiB. */
  busyMiB(place: string): number {
    let sum = 0;
    for (const one of this.containers.values()) {
      if (one.users.size > 0 && placeOf(one.grant) === place) sum += chargeMiB(one);
    }
    for (const { grant } of this.admitted.values()) if (placeOf(grant) === place) sum += grant.share.memoryMiB;
    return sum;
  }

  /** As the GPU table shows them. */
  rows(): Resident[] {
    return this.all().map((one) => {
      const { grant, lastUser, users, container } = one;
      const { action, namespace, isolation } = lastUser ?? {};
      return {
        container: container.id,
        ...(action !== undefined && { action }),
        device: grant.device,
        ...(grant.slice !== undefined && { slice: grant.slice }),
        share: grant.share,
        memoryMiB: chargeMiB(one),
        ...(namespace !== undefined && { namespace }),
        ...(isolation !== undefined && { isolation }),
        activations: [...users.keys()],
      };
    });
  }
}

/** Its cap, or what it was seen to hold if that is more, MiB. */
function chargeMiB({ grant, measuredMiB = 0 }: GpuContainer): number {
  return Math.max(grant.share.memoryMiB, measuredMiB);
}
