// The bounds of one pass of a policy on the ledger.

/** A policy has called the ledger more often in one pass, or changed more of it, than a pass may. */
export class LedgerMisuseError extends Error {
  override name = 'LedgerMisuseError';
}

/** Tasks that a pass may place, by activation. */
export interface PassTasks {
  has(activationId: string): boolean;
}

/** The bounds of one pass of a policy on the ledger: the number of calls, and the activations that it may place. */
export class PassBudget {
  /** Activations that the pass has placed and not released. */
  readonly held = new Set<string>();
  private callsLeft: number;

  constructor(
    private readonly mostCalls: number,
    private readonly tasks: PassTasks,
  ) {
    this.callsLeft = mostCalls;
  }

  /** Counts a call of the ledger. Throws LedgerMisuseError beyond `mostCalls`. */
  count(): void {
    this.callsLeft -= 1;
    if (this.callsLeft < 0) throw new LedgerMisuseError(`a policy called the ledger more than ${this.mostCalls} times`);
  }

  /** Whether the pass may hold and release a placement of an activation whose reservation is older than the pass. */
  mayChange(activationId: string): boolean {
    return this.held.has(activationId) || this.tasks.has(activationId);
  }
}
