import type { LaunchFigures, Placement, Resident, Share } from '@gpuwhisk/common/gpu';
import type { Container, GpuGrant } from '../containers/container-factory.js';
import { placesOf } from '../pool/memory-budget.js';
import { grantKey, grantOf, haveOneCaller } from './gpu-runs.js';
import type { GpuUser } from './gpu-runs.js';

/** A container with a GPU, and what is known of it. */
export interface GpuContainer {
  container: Container;
  grant: GpuGrant;
  /** What the function that it runs was placed with: of the grant's class and memory. */
  share: Share;
  /** Who runs in it, by activation. */
  readonly users: Map<string, GpuUser>;
  /** Who ran in it last; undefined before the first. */
  lastUser: GpuUser | undefined;
  /** Device memory that it was last seen to hold, by device or slice, MiB; undefined before the first look. */
  heldMiB: ReadonlyMap<string, number> | undefined;
  /** The most that it held before it ran anything, by device or slice, MiB. */
  readonly baselineMiB: Map<string, number>;
  /** Looks in a row at which it held more than it may. */
  overruns: number;
  /** How long it took to start it, ms. */
  startMs: number;
  /** And to load what it has now; undefined: nothing yet. */
  loadedMs: number | undefined;
  /** What it was last seen to have launched, where that is counted. */
  launches: LaunchFigures | undefined;
  /** Looks in a row at which the device had not run what it said to have launched. */
  unseenLaunches: number;
  /** When its last run ended, epoch ms; undefined: one runs, or none ever did. */
  idleSince: number | undefined;
  /** It is being ended: it counts no more as a tenant of its devices. */
  ending: boolean;
}

/** The containers of this node that have a GPU, and the activations that have one or will. */
export class GpuContainers {
  private readonly containers = new Map<string, GpuContainer>();
  /** Of activations that were let in and do not run yet. */
  private readonly admitted = new Map<string, { user: GpuUser; grant: GpuGrant }>();
  /** Container of each activation that runs. */
  private readonly running = new Map<string, string>();
  /** Containers that were added so far. */
  added = 0;

  /** Adds a container that has started; it is removed, with the activations that run in it, when it ends. */
  add(container: Container, grant: GpuGrant, startMs: number, left: (one: GpuContainer) => void): void {
    this.added++;
    const one: GpuContainer = {
      container,
      grant,
      share: grant.share,
      users: new Map(),
      lastUser: undefined,
      heldMiB: undefined,
      baselineMiB: new Map(),
      overruns: 0,
      startMs,
      loadedMs: undefined,
      launches: undefined,
      unseenLaunches: 0,
      idleSince: undefined,
      ending: false,
    };
    this.containers.set(container.id, one);
    void container.exited.then(() => {
      this.containers.delete(container.id);
      left(one);
    });
  }

  /** Activations that were let in and do not run yet. */
  get promised(): number {
    return this.admitted.size;
  }

  /** Promises an activation its memory until it began or ended. */
  admit(user: GpuUser, placement: Placement): void {
    this.admitted.set(user.activationId, { user, grant: grantOf(placement) });
  }

  /** Whether a container that runs an activation's function, or is promised to it, may run it too. */
  canJoin(user: GpuUser, placement: Placement): boolean {
    const key = grantKey(grantOf(placement));
    const isAlike = (other: GpuUser | undefined, grant: GpuGrant): boolean =>
      haveOneCaller(other, user) && grantKey(grant) === key;
    return (
      this.all().some(({ users, lastUser, grant }) => users.size > 0 && isAlike(lastUser, grant)) ||
      [...this.admitted.values()].some((one) => isAlike(one.user, one.grant))
    );
  }

  /** An activation runs in a container. */
  began(user: GpuUser, containerId: string): void {
    const { activationId } = user;
    const placed = this.admitted.get(activationId)?.grant.share;
    this.admitted.delete(activationId);
    const one = this.containers.get(containerId);
    if (one === undefined) return;
    if (placed !== undefined) one.share = placed;
    this.running.set(activationId, containerId);
    one.users.set(activationId, user);
    one.idleSince = undefined;
    one.lastUser = user;
  }

  /** A container has loaded a function's code, in so many ms. */
  loaded(containerId: string, ms: number): void {
    const one = this.containers.get(containerId);
    if (one !== undefined) one.loadedMs = ms;
  }

  /** An activation is over at `now` (epoch ms), whether it ran or not. Gives the container that it ran in. */
  ended({ activationId }: GpuUser, now: number): GpuContainer | undefined {
    this.admitted.delete(activationId);
    const containerId = this.running.get(activationId);
    this.running.delete(activationId);
    const one = containerId === undefined ? undefined : this.containers.get(containerId);
    if (one?.users.delete(activationId) === true && one.users.size === 0) one.idleSince = now;
    return one;
  }

  /** Activations that were let in on a device or slice and do not run yet, but `activationId`'s own. */
  awaited(place: string, activationId: string): { user: GpuUser; grant: GpuGrant }[] {
    const others = [...this.admitted].filter(
      ([id, { grant }]) => id !== activationId && placesOf(grant).includes(place),
    );
    return others.map(([, one]) => one);
  }

  get(containerId: string): GpuContainer | undefined {
    return this.containers.get(containerId);
  }

  all(): GpuContainer[] {
    return [...this.containers.values()];
  }

  on(device: string): GpuContainer[] {
    return this.all().filter((one) => one.grant.devices.includes(device));
  }

  /** On a device that is not cut, or on a slice. */
  at(place: string): GpuContainer[] {
    return this.all().filter((one) => placesOf(one.grant).includes(place));
  }

  /** Memory of a device or slice that runs have, or that was promised, MiB. */
  busyMiB(place: string): number {
    let sum = 0;
    for (const one of this.containers.values()) {
      if (one.users.size > 0 && placesOf(one.grant).includes(place)) sum += chargeMiB(one, place);
    }
    for (const { grant } of this.admitted.values()) if (placesOf(grant).includes(place)) sum += grant.share.memoryMiB;
    return sum;
  }

  /** As the GPU table shows them. */
  rows(): Resident[] {
    return this.all().flatMap((one) => one.grant.devices.map((device) => rowOf(one, device)));
  }
}

function rowOf(one: GpuContainer, device: string): Resident {
  const { grant, share, lastUser, users, container, heldMiB, startMs, loadedMs, launches, idleSince } = one;
  const { devices, slice } = grant;
  const { action, namespace, subject, isolation } = lastUser ?? {};
  return {
    container: container.id,
    ...(devices.length > 1 && { gang: [...devices] }),
    ...(action !== undefined && { action }),
    device,
    ...(slice !== undefined && { slice }),
    share,
    memoryMiB: chargeMiB(one, slice ?? device),
    ...(heldMiB !== undefined && { heldMiB: heldMiB.get(slice ?? device) ?? 0 }),
    loadMs: Math.round(startMs + (loadedMs ?? 0)),
    ...(launches !== undefined && { launches }),
    ...(namespace !== undefined && { namespace }),
    ...(subject !== undefined && { subject }),
    ...(isolation !== undefined && { isolation }),
    activations: [...users.keys()],
    ...(idleSince !== undefined && { idleSince }),
  };
}

/** Its cap, or what it was seen to hold there if that is more, MiB. */
function chargeMiB({ grant, heldMiB }: GpuContainer, place: string): number {
  return Math.max(grant.share.memoryMiB, heldMiB?.get(place) ?? 0);
}
