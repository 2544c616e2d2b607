import type { Logger } from '@gpuwhisk/common/logging';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** Interval of refreshes, as in OpenWhisk, ms. */
const refreshMs = 5 * 60_000;

/** The namespaces whose activations are refused: their limits are 0, or their subject is blocked. */
export class NamespaceBlacklist {
  private namespaces: ReadonlySet<string> = new Set();
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly store: ArtifactStore,
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Reads the list now, and then every five minutes. */
  async start(): Promise<void> {
    await this.refresh();
    if (this.closed) return;
    this.timer = this.clock.setBackgroundTimer(refreshMs, () => void this.start());
  }

  has(namespace: string): boolean {
    return this.namespaces.has(namespace);
  }

  /** Reads the list; the previous one stays on failure. */
  async refresh(): Promise<void> {
    try {
      const everything = { view: 'blocked-namespaces', startKey: [], endKey: ['\uffff'] } as const;
      const rows = await this.store.query('subjects', everything);
      this.namespaces = new Set(rows.map(({ key }) => String(key[0])));
    } catch (error) {
      this.logger.error({ error: String(error) }, 'the blocked namespaces could not be read');
    }
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }
}
