import type { Account, Work } from '../view/account.js';
import { capacity } from './filters/capacity.js';
import type { FactFilter, Refusal } from './filters/fact-filter.js';
import { healthy } from './filters/healthy.js';
import { heldToShares } from './filters/held-to-shares.js';
import { isolation } from './filters/isolation.js';
import { memory } from './filters/memory.js';
import { mpsClients } from './filters/mps-clients.js';
import { oneProcess } from './filters/one-process.js';
import { serverForGangs } from './filters/server-for-gangs.js';
import { uncutForGangs } from './filters/uncut-for-gangs.js';
import type { Tenant } from '../view/account.js';

/** All of them, in the order in which they are asked; the first that refuses is named. */
export const factFilters: readonly FactFilter[] = [
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
