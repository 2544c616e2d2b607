import { tasksMiB } from './account.js';
import type { PlaceAccount } from './account.js';
import { kindOf } from './places.js';
import { tasksOn } from './running.js';
import { usedPlaces } from './used-places.js';
import type { GpuState, IdleInstance, View } from './view.js';

/** The GPUs of a view, made of its ledger and runs. */
export function seenGpus(view: Pick<View, 'at' | 'ledger' | 'runs'>): GpuState[] {
  return usedPlaces(view.ledger).map((account) => {
    const { id, place, availableMiB, clients, clientLimit, busy, workloads, staying } = account;
    const { node, device } = place;
    return {
      id,
      node: node.invoker,
      ...kindOf(place),
      ...(node.movesShares === true && { movesShares: true }),
      ...(device.simulated && { simulated: true as const }),
      memoryMiB: tasksMiB(account),
      running: tasksOn(view, account),
      idle: idleOn(account),
      facts: { availableMiB, clients, clientLimit, busy, workloads, staying },
    };
  });
}

function idleOn({ occupants }: PlaceAccount): IdleInstance[] {
  const idle = occupants.filter(({ users, action }) => users === 0 && action !== undefined);
  return idle.map(({ action = '', namespace = '', shareClass, memoryMiB }) => {
    return { function: action, namespace, share: shareClass / 100, memoryMiB };
  });
}
