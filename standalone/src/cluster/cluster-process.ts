/** A controller or an invoker that serves. */
export interface ClusterProcess {
  /** For the start-up: what is ready, and where. */
  readonly line: string;
  /** Takes nothing new, lets what runs end for up to `drainMs`, then stops. */
  close(drainMs: number): Promise<void>;
}
