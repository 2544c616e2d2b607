// Bytes that namespaces have stored in CouchDB, by a view that is read in the background.
import { addBytes } from '@gpuwhisk/common/store/stored-bytes';
import type { NamespaceBytes } from '@gpuwhisk/common/store/stored-bytes';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** Namespaces that one reading asks for, and those whose bytes are kept; the ones asked for longest ago are forgotten. */
const mostAsked = 2000;
const mostKnown = 20_000;

/** Dependencies of StoredSizes. */
interface StoredSizesParts {
  clock: Clock;
  /** From one reading of the view to the next, ms. */
  everyMs: number;
  /** Rows of the view for namespaces, of each database that has data of theirs. */
  read: (namespaces: readonly string[]) => Promise<JsonObject[]>;
  /** Told in a line when the view cannot be read, once until it can be again. */
  onWarning: (line: string) => void;
}

/** What is known of the bytes of namespaces. The view is read from time to time, as long as anyone asks. */
export class StoredSizes {
  private readonly known: NamespaceBytes = new Map();
  private asked = new Set<string>();
  private timer: Timer | undefined;
  private reading: Promise<void> | undefined;
  private hasFailed = false;
  private isClosed = false;

  constructor(private readonly parts: StoredSizesParts) {}

  /** Bytes of a namespace as of the last reading; undefined if it was not asked for before. */
  of(namespace: string): number | undefined {
    if (this.asked.size < mostAsked) this.asked.add(namespace);
    if (this.timer === undefined && this.reading === undefined) this.schedule(0);
    return this.known.get(namespace);
  }

  /** The namespaces that were asked for. */
  all(): Iterable<[namespace: string, bytes: number]> {
    return this.known;
  }

  /** Reads no more. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.timer?.cancel();
    await this.reading;
  }

  private schedule(delayMs: number): void {
    if (this.isClosed) return;
    this.timer = this.parts.clock.setBackgroundTimer(delayMs, () => {
      this.timer = undefined;
      if (this.asked.size === 0) return;
      this.reading = this.refresh().finally(() => {
        this.reading = undefined;
        this.schedule(this.parts.everyMs);
      });
    });
  }

  private async refresh(): Promise<void> {
    const { read, onWarning } = this.parts;
    const asked = [...this.asked];
    this.asked = new Set();
    try {
      const found: NamespaceBytes = new Map();
      for (const { key, value } of await read(asked)) addBytes(found, String(key), Number(value));
      for (const namespace of asked) {
        this.known.delete(namespace);
        this.known.set(namespace, found.get(namespace) ?? 0);
      }
      for (const namespace of this.known.keys()) {
        if (this.known.size <= mostKnown) break;
        this.known.delete(namespace);
      }
      this.hasFailed = false;
    } catch (error) {
      if (this.hasFailed || this.isClosed) return;
      this.hasFailed = true;
      onWarning(
        `the bytes that namespaces have stored cannot be read, and stay as they were: ${(error as Error).message}`,
      );
    }
  }
}
