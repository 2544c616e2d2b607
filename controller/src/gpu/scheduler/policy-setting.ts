// The GPU policy that operators have set on the running platform, in place of the configured one.
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '@gpuwhisk/common/config';
import { concurrentModification } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { compositionOf } from '@gpuwhisk/gpu/policies/make-policy';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { policyProblem } from './check-policy.js';
import { gpuDocument } from '../state/gpu-documents.js';

/** A change of the policy. Times in epoch ms. */
export interface PolicyChange {
  at: number;
  /** Subject of the operator, or `platform` where a policy was undone. */
  by: string;
  /** Names of the policies, with changed stages and settings. */
  from: string;
  to: string;
  /** Why the platform undid a policy; absent: an operator has changed it. */
  why?: string;
}

/** The stored document. */
interface Stored {
  /** Absent: the configured policy is in force. */
  set?: { policy: PolicyChoice; at: number; by: string };
  /** What a faulty policy is undone to; absent: the configured one. */
  former?: PolicyChoice;
  /** The last changes, newest first. */
  changes: PolicyChange[];
}

/** Dependencies of PolicySetting. */
interface PolicySettingParts {
  store: ArtifactStore;
  state: ClusterState;
  clock: Clock;
  logger: Logger;
  lease: Pick<LeaseKeeper, 'epoch'> & Partial<Pick<LeaseKeeper, 'onChange'>>;
  options: Pick<Config['gpu'], 'policy' | 'admission'>;
}

const documentId = 'policy';
/** The ClusterState table with the time of the last change, by which controllers know that the document is another. */
const [table, row] = ['gpuPolicy', 'changed'];
const mostChanges = 20;
/** A policy that an operator has set is undone after more faults than this in its first minutes. */
export const mostFaults = 3;
export const guardMs = 300_000;
/** Time until a write that has failed is repeated, ms. */
const againMs = 1000;

/**
 * The policy in force: the configured one, or the one that an operator has set. The latter is kept in the store, so that it
 * outlasts restarts and changes of the leader, and every controller takes it over when it changes.
 */
export class PolicySetting {
  private stored: Stored = { changes: [] };
  private readonly listeners = new Set<() => void>();
  private subscription: StateSubscription | undefined;
  private faults = 0;
  private isUndoing = false;
  private isClosed = false;
  /** Why the stored policy cannot be used here; absent: it can. */
  problem: string | undefined;

  constructor(private readonly parts: PolicySettingParts) {}

  /** Reads the stored policy, and follows changes by other controllers. Rejects if the store or the state fails. */
  async open(): Promise<void> {
    const { state, lease } = this.parts;
    this.subscription = await state.watch(table, () => this.readSoon());
    await this.read();
    let led = lease.epoch !== undefined;
    lease.onChange?.(() => {
      const leads = lease.epoch !== undefined;
      // Word of a change may not have come while the state was out of reach.
      if (leads && !led) this.readSoon();
      led = leads;
    });
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.subscription?.close();
  }

  /** Calls `listener`, which must not throw, when another policy is in force. */
  onChange(listener: () => void): void {
    this.listeners.add(listener);
  }

  /** The policy in force. */
  get choice(): PolicyChoice {
    const { set } = this.stored;
    return set === undefined || this.problem !== undefined ? this.parts.options.policy : set.policy;
  }

  get configured(): PolicyChoice {
    return this.parts.options.policy;
  }

  /** Who has set a policy in place of the configured one, and when; undefined: the configured one is in force. */
  get set(): Stored['set'] {
    return this.problem === undefined ? this.stored.set : undefined;
  }

  /** The last changes, newest first. */
  get changes(): readonly PolicyChange[] {
    return this.stored.changes;
  }

  /**
   * Puts a policy in force, or the configured one (undefined, or the same as that). The policy must have no `policyProblem`. Throws ApiError (409)
   * if another operator was faster; rejects if the store or the state fails.
   */
  async change(policy: PolicyChoice | undefined, by: string): Promise<PolicyChange> {
    const before = this.choice;
    const at = this.parts.clock.now();
    const to = policy ?? this.configured;
    const change: PolicyChange = { at, by, from: nameOf(before), to: nameOf(to) };
    const next: Stored = {
      ...(!isSame(to, this.configured) && { set: { policy: to, at, by }, former: before }),
      changes: [change, ...this.stored.changes],
    };
    await this.write(next, this.stored.set?.at);
    return change;
  }

  /** Puts the configured policy in force here, as the one that was set cannot be used. */
  unusable(reason: string): void {
    if (this.problem !== undefined) return;
    this.problem = reason;
    this.parts.logger.error({ problem: reason }, 'the GPU policy that was set cannot be used here');
    this.tell();
  }

  /** Counts a fault of the policy in force at the leader, and undoes a policy with too many in its first minutes. */
  faulted(fault: string): void {
    const { clock } = this.parts;
    const { set, former } = this.stored;
    if (set === undefined || former === undefined || this.isUndoing || clock.now() - set.at > guardMs) return;
    this.faults += 1;
    if (this.faults <= mostFaults) return;
    this.isUndoing = true;
    const [why = ''] = fault.split('\n');
    // A fault is told in the middle of a pass of the policy.
    clock.defer(() => this.undo(set, former, why));
  }

  private undo(faulty: NonNullable<Stored['set']>, former: PolicyChoice, fault: string): void {
    const { clock } = this.parts;
    const at = clock.now();
    const why = `${this.faults} faults within ${guardMs / 60_000} minutes, the last: ${fault}`;
    const change: PolicyChange = { at, by: 'platform', from: nameOf(faulty.policy), to: nameOf(former), why };
    const undone: Stored = {
      ...(!isSame(former, this.configured) && { set: { policy: former, at, by: 'platform' } }),
      changes: [change, ...this.stored.changes],
    };
    this.take(undone);
    const write = (): void => {
      // An operator may have set another one meanwhile.
      if (this.isClosed || this.stored !== undone) return;
      this.write(undone, faulty.at).catch((error: unknown) => {
        this.parts.logger.error({ error: String(error) }, 'a policy was undone, which is not stored yet');
        clock.setBackgroundTimer(againMs, write);
      });
    };
    write();
  }

  /** Stores `next` in place of what was set at `before`, epoch ms (undefined: nothing), and tells the other controllers. */
  private async write(next: Stored, before: number | undefined): Promise<void> {
    const { store, state, logger } = this.parts;
    const stored: Stored = { ...next, changes: next.changes.slice(0, mostChanges) };
    try {
      const known = await gpuDocument(store, documentId);
      if ((known as unknown as Stored | undefined)?.set?.at !== before) {
        await this.read();
        throw concurrentModification();
      }
      const revision: JsonObject = known?._rev === undefined ? {} : { _rev: known._rev };
      await store.put('gpu', { ...revision, ...(stored as unknown as JsonObject), _id: documentId });
    } catch (error) {
      if (error instanceof DocumentConflictError) throw concurrentModification();
      throw error;
    }
    const [last] = stored.changes;
    logger.warn({ ...last }, 'the GPU policy was changed');
    this.take(stored);
    try {
      await state.setRow(table, row, last?.at ?? 0);
    } catch (error) {
      logger.error({ error: String(error) }, 'other controllers read the GPU policy that was set when they lead next');
    }
  }

  private readSoon(): void {
    this.read().catch((error: unknown) =>
      this.parts.logger.error({ error: String(error) }, 'the GPU policy that was set could not be read'),
    );
  }

  private async read(): Promise<void> {
    const document = await gpuDocument(this.parts.store, documentId);
    if (document === undefined) return;
    const { set, former, changes } = document as unknown as Stored;
    this.take({ ...(set && { set }), ...(former !== undefined && { former }), changes });
  }

  /** Puts what is stored in force. */
  private take(stored: Stored): void {
    const { options, logger } = this.parts;
    const before = this.choice;
    if (stored.set?.at !== this.stored.set?.at) [this.faults, this.isUndoing] = [0, false];
    this.stored = stored;
    const { set } = stored;
    this.problem = set && policyProblem({ ...options, policy: set.policy });
    if (this.problem !== undefined) {
      logger.error({ policy: set?.policy, problem: this.problem }, 'the GPU policy that was set cannot be used here');
    }
    if (!isSame(before, this.choice)) this.tell();
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

const isSame = (one: PolicyChoice, other: PolicyChoice): boolean => isDeepStrictEqual(one, other);
const nameOf = (choice: PolicyChoice): string => compositionOf(choice).name;
