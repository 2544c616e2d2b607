import { gpuTypeOf } from '@gpuwhisk/gpu/share/quotas';
import type { GpuState, RunningTask, Task } from '@gpuwhisk/gpu/view/view';
import type { PlaceAccount } from '@gpuwhisk/gpu/view/ledger';
import type { Occupant, Reservation } from '@gpuwhisk/gpu/view/occupancy';
import type { Place } from '@gpuwhisk/gpu/view/places';

/** A place as a policy sees it. */
export interface SeenPlace {
  place: Place;
  gpu: GpuState;
}

/** What is known of an activation that runs. */
export type KnownRun = (activationId: string) => Pick<RunningTask, 'task' | 'startedAt'> | undefined;

/** The healthy ones of `accounts` as policies see them at `at` (epoch ms); `heldOn`: what was given out on a place. */
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
        ...{ id, node: node.invoker, type: gpuTypeOf(device, slice), mode: device.mode },
        memoryMiB: Math.max(0, place.capacityMiB - foreignMiB),
        running: occupants
          .filter(({ users }) => users > 0)
          .map((one) => runningIn(one, activationsIn(place, one, here), known, at)),
        idle: occupants
          .filter(({ users, action }) => users === 0 && action !== undefined)
          .map(({ action = '', namespace = '', shareClass, memoryMiB }) => ({
            ...{ function: action, namespace, share: shareClass / 100, memoryMiB },
          })),
        facts: { availableMiB, clients, busy, workloads, staying },
      };
      return { place, gpu };
    });
}

/** What runs in an instance as its agent tells, and what was sent there since. */
export function activationsIn({ node }: Place, { id, container }: Occupant, here: readonly Reservation[]): string[] {
  const told = node.residents.find((one) => one.container === container)?.activations ?? [id];
  const sent = here.filter(({ reuses, ended }) => reuses === id && !ended).map(({ activationId }) => activationId);
  return [...told, ...sent];
}

function runningIn(occupant: Occupant, activations: readonly string[], known: KnownRun, at: number): RunningTask {
  const { id, action = '', namespace = '', memoryMiB, shareClass } = occupant;
  const run = activations.map(known).find((one) => one !== undefined);
  const unknown: Task = {
    ...{ id, function: action, version: '', namespace, batch: 1, gpus: 1, arrivedAt: at, class: 'inference' },
    memoryMiB,
  };
  return { task: { ...(run?.task ?? unknown), memoryMiB }, share: shareClass / 100, startedAt: run?.startedAt ?? at };
}
