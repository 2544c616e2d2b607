/**
 * The invoker's local memory of which activations it handed to a container. It survives a restart, so that an
 * activation that is delivered again is not run again.
 */
export interface StartMarks {
  /** Notes that the activation starts now; the function returned waits until the note would survive a power loss. */
  mark(activationId: string): () => Promise<void>;
  /** Whether an earlier life of this invoker started the activation. */
  startedBefore(activationId: string): boolean;
}
