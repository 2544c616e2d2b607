import type { Rejection } from '@gpuwhisk/common/gpu';
import type { Account, Work } from '../../view/account.js';
import type { Tenant } from '../../view/account.js';

/** Why a place was not taken, for people. */
export type Refusal = Pick<Rejection, 'reason' | 'numbers'>;

/** A fact that forbids work a place, whatever a policy would like. */
export interface FactFilter {
  code: string;
  /** `joined`: an instance that is there, in which the work would run. */
  refuses(account: Account, work: Work, joined?: Tenant): boolean;
  /** In words, of a place that it refuses. */
  explain(account: Account, work: Work): Refusal;
}
