import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { isApiError } from '@gpuwhisk/common/errors';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { InvokeService } from '@gpuwhisk/controller/invoke/invoke-service';
import type { Call } from './ledger-entries.js';
import type { Ledger } from './ledger.js';
import { chooseAction, choosePayload, identities, readActions, updateAction } from './workload.js';

/** Callers that invoke and change actions, and note their answers in the ledger. */
export class Callers {
  /** The actions as the controller knows them. */
  private actions: WhiskAction[] = [];
  private serial = 0;

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly ledger: Ledger,
    private readonly hasGpus: boolean,
  ) {}

  /** Reads the actions again, as a starting controller does. */
  async reread(): Promise<void> {
    this.actions = await readActions(this.store);
  }

  /** One invocation of an action by a random caller, in a random manner. */
  call(service: InvokeService): void {
    const { random, ledger, clock } = this;
    const identity = identities[random.uint32() % identities.length];
    if (identity === undefined) return;
    const action = chooseAction(this.actions, random, this.hasGpus);
    const blocking = random.uint32() % 2 === 0;
    const waitMs = random.uint32() % 2 === 0 ? 1 + (random.uint32() % 100) : 60_000;
    const serial = ++this.serial;
    const call: Call = {
      transactionId: `t${serial}`,
      subject: identity.subject,
      namespace: identity.namespace.name,
      action,
      blocking,
      waitMs,
      sentMs: clock.monotonicMs(),
      life: ledger.life,
    };
    ledger.asked(call);
    const { transactionId, life } = call;
    const payload = choosePayload(random, serial);
    service.invoke({ identity, action, payload, blocking, waitMs, transactionId }).then(
      (outcome) => {
        if (life === ledger.life) ledger.answered(call, { ...outcome, atMs: clock.monotonicMs() });
      },
      (error: unknown) => {
        const status = isApiError(error) ? error.status : 0;
        ledger.check(status === 429 || status === 503, `${transactionId} ended with ${String(error)}`);
        if (life === ledger.life) ledger.answered(call, { type: 'refused', atMs: clock.monotonicMs(), status });
      },
    );
  }

  /** Stores the next version of an action. */
  update(): void {
    const { ledger, random } = this;
    const at = random.uint32() % this.actions.length;
    const action = this.actions[at];
    if (action === undefined) return;
    const { life } = ledger;
    updateAction(this.store, action, random).then(
      (updated) => {
        if (life === ledger.life) this.actions[at] = updated;
      },
      (error: unknown) => ledger.note(`an update failed: ${String(error)}`),
    );
  }
}
