// The fact filters: facts that forbid work a place, whatever a policy would like.
import type { DeviceHealth, DeviceMode, Rejection } from '@gpuwhisk/common/gpu';
import { mpsClientLimit } from '@gpuwhisk/common/gpu';
import type { Account, Work, Tenant } from '../../ledger/account.js';
import { holdsToShares } from '../../view/shares.js';
import { neededMiB } from '../../ledger/account.js';

/** Why a place was not taken, for people. */
export type Refusal = Pick<Rejection, 'reason' | 'numbers'>;

/** A fact that forbids work a place, whatever a policy would like. */
interface FactFilter {
  code: string;
  /** `joined`: an instance that is there, in which the work would run. */
  refuses(account: Account, work: Work, joined?: Tenant): boolean;
  /** In words, of a place that it refuses. */
  explain(account: Account, work: Work): Refusal;
}

/**
 * Work is put on healthy devices only, none that is cordoned, drained, offline or unheard of; and into an instance that is
 * there on a device that leaves, if it ends in time.
 */
const healthy: FactFilter = {
  code: 'health',
  refuses: ({ health }, work, joined) =>
    health?.state !== 'healthy' && (joined === undefined || !endsInTime(health, work)),
  explain: ({ health }, { timeLimitMs }) => ({
    reason:
      health === undefined
        ? 'nothing is known of it'
        : [health.state, health.reasons.join('; ')].filter(Boolean).join(': '),
    numbers: {
      ...(health?.longestRunMs !== undefined && { longestRunMs: health.longestRunMs }),
      ...(health?.longestRunMs !== undefined && timeLimitMs !== undefined && { timeLimitMs }),
    },
  }),
};

/** Whether a run of work ends on a device that leaves before it is gone. */
export function endsInTime(
  health: DeviceHealth | undefined,
  { timeLimitMs = Infinity }: Pick<Work, 'timeLimitMs'>,
): boolean {
  return health?.state === 'leaving' && timeLimitMs <= (health.longestRunMs ?? 0);
}

/** A namespace with a bound on its share runs only where processes are held to their shares. */
const heldToShares: FactFilter = {
  code: 'shares',
  refuses: ({ mode }, { isBounded }) => isBounded && !holdsToShares(mode),
  explain: () => ({ reason: 'nothing holds it to the share that its namespace may have', numbers: {} }),
};

/** Work of several devices takes none that is cut into slices. */
const uncutForGangs: FactFilter = {
  code: 'slices',
  refuses: ({ mode }, { gpus }) => gpus > 1 && mode === 'mig',
  explain: () => ({ reason: 'it is cut into slices', numbers: {} }),
};

/** Work needs no more memory than the place may give away in all. */
const capacity: FactFilter = {
  code: 'capacity',
  refuses: (account, work) => account.capacityMiB < neededMiB(work, account),
  explain: (account, work) => ({
    reason: 'too small',
    numbers: { capacityMiB: account.capacityMiB, needMiB: neededMiB(work, account) },
  }),
};

/** Work of several devices needs an MPS server of its own, and a workload is a client of the device's. */
const serverForGangs: FactFilter = {
  code: 'workloads',
  refuses: ({ mode, workloads }, { gpus }) => gpus > 1 && mode === 'mps' && workloads > 0,
  explain: ({ workloads }) => ({ reason: 'workloads are clients of its MPS server', numbers: { workloads } }),
};

function others({ mode, staying }: Account, work: Work): Tenant[] {
  return staying.filter((one) => !mayShare(mode, one, work));
}

/** Work shares a place only with instances that its isolation, theirs and the device's mode allow. */
const isolation: FactFilter = {
  code: 'isolation',
  refuses({ mode, staying }, work, joined) {
    for (const one of staying) if (one !== joined && !mayShare(mode, one, work)) return true;
    return false;
  },
  explain: (account, work) => ({
    reason: 'isolation: it is shared with others',
    numbers: { others: others(account, work).length },
  }),
};

/** A device in exclusive mode runs one process at a time. */
const oneProcess: FactFilter = {
  code: 'exclusive',
  refuses: ({ mode, busy }, _, joined) => mode === 'exclusive' && joined === undefined && busy > 0,
  explain: ({ busy }) => ({ reason: 'it serves one process at a time', numbers: { running: busy } }),
};

/** An MPS server has a limit of clients, idle instances included. */
const mpsClients: FactFilter = {
  code: 'clients',
  refuses: (account, _, joined) => joined === undefined && account.clients >= mostClients(account),
  explain: ({ clients }) => ({ reason: 'it has as many clients as MPS serves', numbers: { clients } }),
};

/** Most clients that a place serves; Infinity if it has no MPS server. */
export function mostClients({ mode, clientLimit }: Pick<Account, 'mode' | 'clientLimit'>): number {
  return clientLimit ?? (mode === 'mps' ? mpsClientLimit : Infinity);
}

/** Work that gets a process of its own needs memory for it, of which idle instances give theirs. */
const memory: FactFilter = {
  code: 'memory',
  // Where none is left at all, work of unknown need has none either.
  refuses: (account, work, joined) =>
    joined === undefined && (account.availableMiB < neededMiB(work, account) || account.availableMiB <= 0),
  explain: (account, work) => ({
    reason: 'too little free memory',
    numbers: { availableMiB: account.availableMiB, needMiB: neededMiB(work, account) },
  }),
};

/** Whether both may be on one device (or slice) of this mode at once: as their isolations allow, and the mode. */
export function mayShare(mode: DeviceMode, one: Tenant, other: Tenant): boolean {
  // A process is a client of one MPS server; the server of several devices has them for itself.
  if (mode === 'mps' && (one.gpus > 1 || other.gpus > 1)) return false;
  if (one.action !== undefined && one.action === other.action && one.namespace === other.namespace) return true;
  if (mode === 'exclusive' || one.isolation === 'exclusive' || other.isolation === 'exclusive') return false;
  if (one.isolation === undefined || other.isolation === undefined) return true;
  // Without MPS, processes share no server.
  if (mode === 'timeslice') return true;
  return one.namespace === other.namespace || (one.isolation === 'shared' && other.isolation === 'shared');
}

/** All fact filters, in the order in which they are asked; the first that refuses is named. */
const factFilters: readonly FactFilter[] = [
  healthy,
  heldToShares,
  uncutForGangs,
  capacity,
  serverForGangs,
  isolation,
  oneProcess,
  mpsClients,
  memory,
];

/** The first filter that refuses work a place; undefined if none does. `joined`: an instance that is there, in which it would run. */
export function refusing(account: Account, work: Work, joined?: Tenant): FactFilter | undefined {
  for (const filter of factFilters) if (filter.refuses(account, work, joined)) return filter;
  return undefined;
}

/** Why a place cannot take work; undefined if it can. */
export function refusalOf(account: Account, work: Work, joined?: Tenant): Refusal | undefined {
  return refusing(account, work, joined)?.explain(account, work);
}
