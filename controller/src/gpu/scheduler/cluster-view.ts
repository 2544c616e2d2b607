// The cluster in the form that policies see: places, instances, nodes, devices.
import { withoutUndefined } from '@gpuwhisk/common/collections';
import { activationsIn, residentOf, shareNow, tasksOn } from '@gpuwhisk/gpu/view/running';
import type { DeviceState, InstanceState, NodeState, RunningTask, View } from '@gpuwhisk/gpu/view/view';
import { usedPlaces } from '@gpuwhisk/gpu/ledger/used-places';
import type { Decision } from '@gpuwhisk/gpu/view/decision';
import type { PlaceAccount } from '@gpuwhisk/gpu/ledger/ledger';
import type { Occupant, Reservation } from '@gpuwhisk/gpu/ledger/occupancy';
import type { Device, NodeStatus, Slice } from '@gpuwhisk/common/gpu';
import { geometriesOf } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import { cutProblem } from '@gpuwhisk/gpu/stages/geometry/cut-problem';

/** Whether a node has a busy process below its class, or several of them on one place, and can move their shares. */
export function mayMoveShares({ movesShares = false, residents }: NodeStatus): boolean {
  if (!movesShares) return false;
  const busy = residents.filter(({ activations }) => activations.length > 0);
  const places = busy.map(({ device, slice = device }) => slice);
  return busy.some(({ share }) => share.smLimit * 100 < share.shareClass) || new Set(places).size < places.length;
}

/** The places where the share of a running task is moved, or has been moved below its class. */
export function movedPlaces(
  view: Pick<View, 'at' | 'ledger' | 'runs'>,
  { actions = [] }: Pick<Decision, 'actions'>,
): string[] {
  const moved = new Set(actions.map((action) => (action.kind === 'reshare' ? action.instance : '')));
  const isMoved = ({ instance = '', share, class: own = share }: RunningTask): boolean =>
    share < own || moved.has(instance);
  const moving = usedPlaces(view.ledger).filter(({ place }) => place.node.movesShares === true);
  return moving.filter((account) => tasksOn(view, account).some(isMoved)).map(({ id }) => id);
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
  for (const { id, place, health, occupants } of accounts) {
    const here = [...heldOn(id)];
    for (const one of occupants) {
      const { action, namespace, users } = one;
      if (action === undefined || namespace === undefined || seen.has(one.id)) continue;
      const activations = users > 0 ? activationsIn(place, one, here) : [];
      const tasks = activations.filter((activation) => !isLaunch(activation));
      const resident = residentOf(place, one);
      const { smRequest: request, smLimit: limit } = shareNow(place, one);
      const isEnding = health?.state === 'leaving' || isRetiring(place.node.invoker, one.id);
      const state = stateOf(one, tasks, isEnding);
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
function stateOf({ users, container }: Occupant, tasks: readonly string[], isEnding: boolean): InstanceState['state'] {
  if (users === 0) return 'idle';
  if (container === undefined || tasks.length === 0) return 'loading';
  return isEnding ? 'draining' : 'running';
}

/** Nodes for policies. */
export function seenNodes(rows: readonly NodeStatus[]): NodeState[] {
  return rows.map(({ invoker: id, labels = {}, market, pricePerHour, leavesAt }) =>
    withoutUndefined({ id, labels, market, pricePerHour, leavesAt }),
  );
}

/** The devices of nodes, for policies. */
export function seenDevices(rows: readonly NodeStatus[]): DeviceState[] {
  return rows.flatMap((node) => node.devices.map((device) => seenDevice(node, device)));
}

function seenDevice(node: NodeStatus, device: Device): DeviceState {
  const { uuid, type, mode, slices } = device;
  const status = node.status.find((one) => one.uuid === uuid);
  const cut = status?.cut?.state === 'done' ? undefined : status?.cut;
  const mayNotCut = whyNotCut(node, device);
  return {
    id: uuid,
    node: node.invoker,
    type,
    mode,
    geometries: geometriesOf(type),
    places: mode === 'mig' ? slices.map((slice) => ({ id: slice.uuid, ...slotsOf(slice) })) : [{ id: uuid }],
    ...(mayNotCut !== undefined && { mayNotCut }),
    ...(cut !== undefined && {
      cut: { profiles: cut.profiles, ...(cut.state === 'refused' && { refused: cut.reason ?? 'its node refused' }) },
    }),
  };
}

/** Why a policy may not have a device of a node cut; undefined if it may. */
export function whyNotCut({ cuts = true, status }: NodeStatus, { uuid }: Device): string | undefined {
  const seen = status.find((one) => one.uuid === uuid);
  const foreign = seen?.processes.filter(({ container }) => container === undefined).length ?? 0;
  const problem = cutProblem({ isManaged: cuts, foreign });
  if (problem !== undefined) return problem;
  const isUnderWay = seen?.cut !== undefined && seen.cut.state !== 'done' && seen.cut.state !== 'refused';
  if (isUnderWay || seen?.health.state === 'healthy') return undefined;
  return `it is ${[seen?.health.state ?? 'not heard of', ...(seen?.health.reasons ?? [])].join(': ')}`;
}

function slotsOf({ profile, startSlot, slots }: Slice): Omit<DeviceState['places'][number], 'id'> {
  return { profile, startSlot, slots };
}
