// The cluster in the form that policies see: places, instances, nodes, devices.
import { gpuTypeOf } from '@gpuwhisk/gpu/view/places';
import type { GpuState, RunningTask, Task, DeviceState, InstanceState, NodeState, View } from '@gpuwhisk/gpu/view/view';
import type { Decision } from '@gpuwhisk/gpu/view/decision';
import type { PlaceAccount } from '@gpuwhisk/gpu/view/ledger';
import type { Occupant, Reservation } from '@gpuwhisk/gpu/view/occupancy';
import type { Place } from '@gpuwhisk/gpu/view/places';
import type { NodeStatus, Resident, Share, Slice } from '@gpuwhisk/common/gpu';
import { geometriesOf } from '@gpuwhisk/gpu/geometry/mig-profiles';
import { placeId } from '@gpuwhisk/gpu/view/places';

/** A place in the form that a policy sees. */
export interface SeenPlace {
  place: Place;
  gpu: GpuState;
}

/** A healthy GPU or MIG instance, and whether it is free. Samples do not count as use, since they give way to all work. */
export interface SampledPlace {
  gpu: GpuState;
  isFree: boolean;
}

/** Returns the task and the start of a running activation, if known. */
export type KnownRun = (activationId: string) => Pick<RunningTask, 'task' | 'startedAt'> | undefined;

/** The healthy places of `accounts` for policies, at `at` (epoch ms); `heldOn` returns the reservations on a place. */
export function seenPlaces(
  accounts: readonly PlaceAccount[],
  heldOn: (id: string) => Iterable<Reservation>,
  known: KnownRun,
  at: number,
): SeenPlace[] {
  return accounts
    .filter(({ health }) => health?.state === 'healthy')
    .map((account) => {
      const { id, place, occupants, foreignMiB } = account;
      const { availableMiB, clients, busy, workloads, staying } = account;
      const { node, device, slice } = place;
      const here = [...heldOn(id)];
      const gpu: GpuState = {
        id,
        node: node.invoker,
        type: gpuTypeOf(device, slice),
        mode: device.mode,
        ...(node.movesShares === true && { movesShares: true }),
        memoryMiB: Math.max(0, place.capacityMiB - foreignMiB),
        running: occupants.filter(({ users }) => users > 0).map((one) => runningIn(place, one, here, known, at)),
        idle: occupants
          .filter(({ users, action }) => users === 0 && action !== undefined)
          .map(({ action = '', namespace = '', shareClass, memoryMiB }) => ({
            function: action,
            namespace,
            share: shareClass / 100,
            memoryMiB,
          })),
        facts: { availableMiB, clients, busy, workloads, staying },
      };
      return { place, gpu };
    });
}

/** The activations in an instance: those that its agent reports, and those sent since. */
function activationsIn({ node }: Place, { id, container }: Occupant, here: readonly Reservation[]): string[] {
  const told = node.residents.find((one) => one.container === container)?.activations ?? [id];
  const sent = here.filter(({ reuses, ended }) => reuses === id && !ended).map(({ activationId }) => activationId);
  return [...told, ...sent];
}

function runningIn(
  place: Place,
  occupant: Occupant,
  here: readonly Reservation[],
  known: KnownRun,
  at: number,
): RunningTask {
  const { id, container, action = '', namespace = '', memoryMiB, shareClass, gang } = occupant;
  const run = activationsIn(place, occupant, here)
    .map(known)
    .find((one) => one !== undefined);
  const unknown: Task = {
    id,
    function: action,
    version: '',
    namespace,
    batch: 1,
    gpus: 1,
    arrivedAt: at,
    class: 'inference',
    memoryMiB,
  };
  const running = { task: { ...(run?.task ?? unknown), memoryMiB }, startedAt: run?.startedAt ?? at };
  // Tokens belong to one device, and what is not known to run cannot be predicted.
  const isMovable =
    place.node.movesShares === true && container !== undefined && gang === undefined && run !== undefined;
  if (!isMovable) return { ...running, share: shareClass / 100 };
  return { ...running, share: shareNow(place, occupant).smLimit, instance: id, class: shareClass / 100 };
}

/** Whether a node has a busy process below its class, or several of them on one place, and can move their shares. */
export function mayMoveShares({ movesShares = false, residents }: NodeStatus): boolean {
  if (!movesShares) return false;
  const busy = residents.filter(({ activations }) => activations.length > 0);
  const places = busy.map(({ device, slice = device }) => slice);
  return busy.some(({ share }) => share.smLimit * 100 < share.shareClass) || new Set(places).size < places.length;
}

/** The places where the share of a running task is moved, or has been moved below its class. */
export function movedPlaces({ gpus }: Pick<View, 'gpus'>, { actions = [] }: Pick<Decision, 'actions'>): string[] {
  const moved = new Set(actions.map((action) => (action.kind === 'reshare' ? action.instance : '')));
  const isMoved = ({ instance = '', share, class: own = share }: RunningTask): boolean =>
    share < own || moved.has(instance);
  return gpus.filter(({ movesShares = false, running }) => movesShares && running.some(isMoved)).map(({ id }) => id);
}

/** Facts about instances that agents' rows do not show. */
export interface KnownInstances {
  /** The reservations on a place. */
  heldOn(id: string): Iterable<Reservation>;
  /** Whether an activation is a launch. */
  isLaunch(activationId: string): boolean;
  /** Whether an instance is being retired. */
  isRetiring(invoker: string, container: string): boolean;
}

/** The instances of functions on places, for policies; an instance on several places appears once. */
export function seenInstances(
  accounts: readonly PlaceAccount[],
  { heldOn, isLaunch, isRetiring }: KnownInstances,
): InstanceState[] {
  const seen = new Map<string, InstanceState>();
  for (const { id, place, occupants } of accounts) {
    const here = [...heldOn(id)];
    for (const one of occupants) {
      const { action, namespace, users } = one;
      if (action === undefined || namespace === undefined || seen.has(one.id)) continue;
      const activations = users > 0 ? activationsIn(place, one, here) : [];
      const tasks = activations.filter((activation) => !isLaunch(activation));
      const resident = residentOf(place, one);
      const { smRequest: request, smLimit: limit } = shareNow(place, one);
      const state = stateOf(one, tasks, isRetiring(place.node.invoker, one.id));
      const { idleSince } = resident ?? {};
      seen.set(one.id, {
        id: one.id,
        function: action,
        namespace,
        gpus: one.gang ?? [id],
        memoryMiB: one.memoryMiB,
        tasks,
        state,
        share: { request, limit, class: one.shareClass / 100 },
        ...(state === 'idle' && idleSince !== undefined && { idleSince }),
        ...(one.loadMs !== undefined && { loadMs: one.loadMs }),
      });
    }
  }
  return [...seen.values()];
}

/** The state of an instance; one that its agent does not report yet is loading. */
function stateOf(
  { users, container }: Occupant,
  tasks: readonly string[],
  isRetiring: boolean,
): InstanceState['state'] {
  if (users === 0) return 'idle';
  if (container === undefined || tasks.length === 0) return 'loading';
  return isRetiring ? 'draining' : 'running';
}

function residentOf({ node }: Place, { container }: Occupant): Resident | undefined {
  return node.residents.find((one) => one.container === container);
}

/** The share that an occupant's agent reports, or else the promised one. */
function shareNow(place: Place, occupant: Occupant): Pick<Share, 'smRequest' | 'smLimit'> {
  const { request, limit } = occupant;
  return residentOf(place, occupant)?.share ?? { smRequest: request / 1000, smLimit: limit / 1000 };
}

/** Nodes for policies. */
export function seenNodes(rows: readonly NodeStatus[]): NodeState[] {
  return rows.map(({ invoker, labels = {}, market, pricePerHour, leavesAt }) => ({
    id: invoker,
    labels,
    ...(market !== undefined && { market }),
    ...(pricePerHour !== undefined && { pricePerHour }),
    ...(leavesAt !== undefined && { leavesAt }),
  }));
}

/** The devices of places, for policies. */
export function seenDevices(accounts: readonly PlaceAccount[]): DeviceState[] {
  const seen = new Map<string, DeviceState & { places: DeviceState['places'][number][] }>();
  for (const { place } of accounts) {
    const { device, slice, node } = place;
    const { uuid, type, mode } = device;
    const known = seen.get(uuid) ?? {
      id: uuid,
      node: node.invoker,
      type,
      mode,
      geometries: geometriesOf(type),
      places: [],
    };
    seen.set(uuid, known);
    known.places.push({ id: placeId(place), ...(slice !== undefined && slotsOf(slice)) });
  }
  return [...seen.values()];
}

function slotsOf({ profile, startSlot, slots }: Slice): Omit<DeviceState['places'][number], 'id'> {
  return { profile, startSlot, slots };
}
