import type { LaunchFigures, Placement, Resident, Share } from '@gpuwhisk/common/gpu';
import type { Container, GpuGrant } from '../containers/container-factory.js';
import { grantedMiB, placesOf } from '../pool/memory-budget.js';
import { grantKey, grantOf, haveOneCaller } from './gpu-runs.js';
import type { GpuUser } from './gpu-runs.js';

/** A container with a GPU, and its state. */
export interface GpuContainer {
  container: Container;
  grant: GpuGrant;
  /** The share that its function was placed with, of the grant's class and memory. */
  share: Share;
  /** Running activations, by id. */
  readonly users: Map<string, GpuUser>;
  /** The last activation that ran; undefined before the first. */
  lastUser: GpuUser | undefined;
  /** Device memory held at the last look, by device or slice, MiB; undefined before the first look. */
  heldMiB: ReadonlyMap<string, number> | undefined;
  /** Largest memory held before the first run, by device or slice, MiB. */
  readonly baselineMiB: Map<string, number>;
  /** Looks in a row with more memory than the bound. */
  overruns: number;
  /** Time of the start, ms. */
  startMs: number;
  /** Time to load the present code, ms; undefined before a load. */
  loadedMs: number | undefined;
  /** Launches at the last look, if launches are counted. */
  launches: LaunchFigures | undefined;
  /** Looks in a row at which the device had not run the counted launches. */
  unseenLaunches: number;
  /** End of the last run, epoch ms; undefined during runs and before the first. */
  idleSince: number | undefined;
  /** Whether the container is being ended, so that it is no tenant of its devices any longer. */
  ending: boolean;
  /** Called, once, when its run is to end within a grace. */
  onRetire: (() => void) | undefined;
}

/** The containers of this node with a GPU, and the activations that run on a GPU or were admitted to one. */
export class GpuContainers {
  private readonly containers = new Map<string, GpuContainer>();
  /** Activations that were admitted and do not run yet. */
  private readonly admitted = new Map<string, { user: GpuUser; grant: GpuGrant }>();
  /** Container of each activation that runs. */
  private readonly running = new Map<string, string>();
  /** Number of containers added so far. */
  added = 0;

  /** Adds a started container. Its end removes the container and the activations that run in it, and calls `left`. */
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
      onRetire: undefined,
    };
    this.containers.set(container.id, one);
    void container.exited.then(() => {
      this.containers.delete(container.id);
      left(one);
    });
  }

  /** Number of activations that were admitted and do not run yet. */ get promised(): number {
    return this.admitted.size;
  }

  /** Reserves an activation's memory until its run begins or it ends. */
  admit(user: GpuUser, placement: Placement): void {
    this.admitted.set(user.activationId, { user, grant: grantOf(placement) });
  }

  /** Whether an activation may join a container that runs its function or is reserved for it. */
  canJoin(user: GpuUser, placement: Placement): boolean {
    const key = grantKey(grantOf(placement));
    const isAlike = (other: GpuUser | undefined, grant: GpuGrant): boolean =>
      haveOneCaller(other, user) && grantKey(grant) === key;
    return (
      this.all().some(({ users, lastUser, grant }) => users.size > 0 && isAlike(lastUser, grant)) ||
      [...this.admitted.values()].some((one) => isAlike(one.user, one.grant))
    );
  }

  /** Notes that an activation runs in a container. */
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

  /** Notes that a container has loaded a function's code, in `ms`. */
  loaded(containerId: string, ms: number): void {
    const one = this.containers.get(containerId);
    if (one !== undefined) one.loadedMs = ms;
  }

  /** Notes that an activation is over at `now` (epoch ms), after a run or without one. Returns the container of its run. */
  ended({ activationId }: GpuUser, now: number): GpuContainer | undefined {
    this.admitted.delete(activationId);
    const containerId = this.running.get(activationId);
    this.running.delete(activationId);
    const one = containerId === undefined ? undefined : this.containers.get(containerId);
    if (one?.users.delete(activationId) === true && one.users.size === 0) one.idleSince = now;
    return one;
  }

  /** Activations other than `activationId` that were admitted to a device or slice and do not run yet. */
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

  /** Containers on a device that is not cut, or on a slice. */
  at(place: string): GpuContainer[] {
    return this.all().filter((one) => placesOf(one.grant).includes(place));
  }

  /** Memory of a device or slice that busy containers have or that is reserved, MiB. */
  busyMiB(place: string): number {
    let sum = 0;
    for (const one of this.containers.values()) {
      if (one.users.size > 0 && placesOf(one.grant).includes(place)) sum += chargeMiB(one, place);
    }
    for (const { grant } of this.admitted.values())
      if (placesOf(grant).includes(place)) sum += grantedMiB(grant, place);
    return sum;
  }

  /** The containers as rows of the GPU table. */
  rows(): Resident[] {
    return this.all().flatMap((one) => one.grant.devices.map((device) => rowOf(one, device)));
  }
}

function rowOf(one: GpuContainer, device: string): Resident {
  const { grant, share, lastUser, users, container, heldMiB, startMs, loadedMs, launches, idleSince } = one;
  const { devices, slice } = grant;
  const { action, version, namespace, subject, isolation } = lastUser ?? {};
  return {
    container: container.id,
    since: container.sinceMs,
    ...(devices.length > 1 && { gang: [...devices] }),
    ...(action !== undefined && { action }),
    ...(version !== undefined && { version }),
    device,
    ...(slice !== undefined && { slice }),
    share,
    memoryMiB: chargeMiB(one, slice ?? device),
    ...(heldMiB !== undefined && { heldMiB: heldMiB.get(slice ?? device) ?? 0 }),
    loadMs: Math.round(startMs + (loadedMs ?? 0)),
    ...(users.size > 0 && loadedMs === undefined && { isLoading: true as const }),
    ...(launches !== undefined && { launches }),
    ...(namespace !== undefined && { namespace }),
    ...(subject !== undefined && { subject }),
    ...(isolation !== undefined && { isolation }),
    activations: [...users.keys()],
    ...(idleSince !== undefined && { idleSince }),
  };
}

/** Memory charged to a container on a place, MiB: its cap, or the memory held at the last look if that is more. */
function chargeMiB({ grant, heldMiB }: GpuContainer, place: string): number {
  return Math.max(grantedMiB(grant, place), heldMiB?.get(place) ?? 0);
}
