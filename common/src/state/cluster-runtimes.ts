// The runtimes that the invokers of a cluster have, which may be others than those of a controller's machine.
import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';
import type { Logger } from '../logging.js';
import { offeredManifest, joinedManifest } from '../runtimes.js';
import type { RuntimeManifest } from '../runtimes.js';
import type { Clock, Timer } from '../system/clock.js';
import { StateUnavailableError } from './cluster-state.js';
import type { ClusterState, StateSubscription } from './cluster-state.js';

/** The table of manifests by invoker. */
const table = 'runtimes';
/** How often an invoker tells its runtimes, and a controller reads those of all, ms. */
const tellMs = 60_000;
/** How long an invoker's runtimes stay listed after it was heard last, ms: longer than it takes to start again. */
const keptMs = 600_000;

/** Dependencies of OfferedRuntimes and ClusterRuntimes. */
interface Parts {
  state: Pick<ClusterState, 'rows' | 'setRow' | 'watch'>;
  clock: Clock;
  logger: Pick<Logger, 'warn'>;
}

/** Does `work` now and every minute until it is closed; a state that cannot be reached is logged. */
class EachMinute {
  private timer: Timer | undefined;
  private closed = false;

  constructor(
    private readonly parts: Pick<Parts, 'clock' | 'logger'>,
    private readonly work: () => Promise<void>,
  ) {}

  async open(): Promise<void> {
    try {
      await this.work();
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      this.parts.logger.warn({ error: error.message }, 'the runtimes of the cluster were not told or read');
    }
    if (!this.closed) this.timer = this.parts.clock.setBackgroundTimer(tellMs, () => void this.open());
  }

  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }
}

/** Tells the cluster which runtimes an invoker has. */
export class OfferedRuntimes {
  private readonly telling: EachMinute;

  constructor(parts: Parts & { invoker: string; manifest: RuntimeManifest }) {
    const row = offeredManifest(parts.manifest) as unknown as JsonValue;
    this.telling = new EachMinute(parts, () => parts.state.setRow(table, parts.invoker, row, keptMs));
  }

  /** Resolves once it is told, or the state could not be reached. */
  open(): Promise<void> {
    return this.telling.open();
  }

  close(): void {
    this.telling.close();
  }
}

/** The manifest of a row; undefined for what is none, as of a release that keeps something else there. */
function manifestIn(row: JsonValue | undefined): RuntimeManifest | undefined {
  return isJsonObject(row) && isJsonObject(row.runtimes) ? (row as unknown as RuntimeManifest) : undefined;
}

/** The runtimes that the invokers of a cluster have together; `listed` while none is known. */
export class ClusterRuntimes {
  private offered = new Map<string, RuntimeManifest>();
  private joined: RuntimeManifest;
  private readonly reading: EachMinute;
  private subscription: StateSubscription | undefined;

  constructor(private readonly parts: Parts & { listed: RuntimeManifest }) {
    this.joined = parts.listed;
    this.reading = new EachMinute(parts, () => this.read());
  }

  async open(): Promise<void> {
    this.subscription = await this.parts.state.watch(table, (invoker, row) => {
      const manifest = manifestIn(row);
      if (manifest === undefined) return;
      this.offered.set(invoker, manifest);
      this.join();
    });
    await this.reading.open();
  }

  async close(): Promise<void> {
    this.reading.close();
    await this.subscription?.close();
  }

  manifest(): RuntimeManifest {
    return this.joined;
  }

  private async read(): Promise<void> {
    const rows = [...(await this.parts.state.rows(table))];
    this.offered = new Map(
      rows.flatMap(([invoker, row]): [string, RuntimeManifest][] => {
        const manifest = manifestIn(row);
        return manifest === undefined ? [] : [[invoker, manifest]];
      }),
    );
    this.join();
  }

  private join(): void {
    this.joined = joinedManifest(this.parts.listed, [...this.offered.values()]);
  }
}
