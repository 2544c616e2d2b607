import { gpuRowTtlMs, gpuTable } from '@gpuwhisk/common/gpu';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { readRow, RowError } from '@gpuwhisk/common/gpu-rows';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';

/** Time between two looks at the clock, ms. */
const lookMs = 500;
/** A row lasts so many looks: at least `gpuRowTtlMs`. */
const looksOfRow = gpuRowTtlMs / lookMs + 1;

interface Row {
  node: NodeStatus;
  /** Time of arrival, monotonic ms. */
  seenMs: number;
}

/** Distinguishes rows of one node. */
interface Stamp extends Pick<NodeStatus, 'version' | 'at'> {
  /** Time of arrival, monotonic ms. */
  seenMs: number;
}

/** The last row of every node with GPUs. The rows are kept in memory, so that reads do not wait for the cluster's state. */
export class GpuTable {
  /** By the names of nodes, in their order: each invocation reads all of them. */
  private rows = new Map<string, Row>();
  /** The newest row of each node, also of nodes whose row has been removed. */
  private readonly newest = new Map<string, Stamp>();
  /** Why the last row of a node could not be read, by the node. */
  private readonly unread = new Map<string, string>();
  private readonly listeners = new Set<(node: NodeStatus) => void>();
  private readonly goneListeners = new Set<(invoker: string) => void>();
  private subscription: StateSubscription | undefined;
  /** Times of the last `looksOfRow` looks, monotonic ms, oldest first. */
  private readonly looksMs: number[] = [];
  private timer: Timer | undefined;

  constructor(
    private readonly state: ClusterState,
    private readonly clock: Clock,
    private readonly logger: Pick<Logger, 'error'>,
  ) {}

  /** Starts to follow the cluster's table. Rejects with StateUnavailableError. */
  async open(): Promise<void> {
    this.look();
    this.subscription = await this.state.watch(gpuTable, (invoker, value) => this.take(invoker, value));
    for (const [invoker, value] of await this.state.rows(gpuTable)) {
      if (!this.rows.has(invoker)) this.take(invoker, value);
    }
  }

  async close(): Promise<void> {
    this.timer?.cancel();
    await this.subscription?.close();
  }

  /** Calls `listener`, which must not throw, for every row that arrives. */
  onRow(listener: (node: NodeStatus) => void): void {
    this.listeners.add(listener);
  }

  /** Calls `listener`, which must not throw, with the name of every node whose row is removed from the table. */
  onGone(listener: (invoker: string) => void): void {
    this.goneListeners.add(listener);
  }

  /**
   * A node without a row since this time is silent, monotonic ms. It is `gpuRowTtlMs` ago, or earlier while this process is
   * busy: rows wait for the event loop then, as the looks do.
   */
  silentSinceMs(): number {
    const [oldestMs = -Infinity] = this.looksMs;
    return this.looksMs.length < looksOfRow ? -Infinity : oldestMs;
  }

  /** The nodes that are not silent, by name. */
  nodes(): NodeStatus[] {
    const silentMs = this.silentSinceMs();
    const live: NodeStatus[] = [];
    for (const { node, seenMs } of this.rows.values()) if (seenMs >= silentMs) live.push(node);
    return live;
  }

  private look(): void {
    this.looksMs.push(this.clock.monotonicMs());
    if (this.looksMs.length > looksOfRow) this.looksMs.shift();
    this.timer = this.clock.setBackgroundTimer(lookMs, () => this.look());
  }

  private take(invoker: string, value: JsonValue | undefined): void {
    if (value === undefined) {
      this.rows.delete(invoker);
      this.unread.delete(invoker);
      for (const listener of this.goneListeners) listener(invoker);
      return;
    }
    const node = this.read(invoker, value);
    if (node === undefined) return;
    const seenMs = this.clock.monotonicMs();
    if (this.isOld(invoker, node, seenMs)) return;
    this.newest.set(invoker, { version: node.version, at: node.at, seenMs });
    const isNew = !this.rows.has(invoker);
    this.rows.set(invoker, { node, seenMs });
    if (isNew) this.rows = new Map([...this.rows].sort(([one], [other]) => (one < other ? -1 : 1)));
    for (const listener of this.listeners) listener(node);
  }

  /** The number of nodes whose last row could not be read: they get no work once their last good row is silent. */
  get unreadNodes(): number {
    return this.unread.size;
  }

  /** The row; undefined if it cannot be read. The reason is logged once, until it changes. */
  private read(invoker: string, value: JsonValue): NodeStatus | undefined {
    try {
      const node = readRow(value);
      if (node.invoker !== invoker) throw new RowError(`invoker: it is '${node.invoker}'`);
      this.unread.delete(invoker);
      return node;
    } catch (error) {
      if (!(error instanceof RowError)) throw error;
      const { message: reason } = error;
      if (this.unread.get(invoker) !== reason) this.logger.error({ invoker, reason }, "a node's row cannot be read");
      this.unread.set(invoker, reason);
      return undefined;
    }
  }

  /**
   * Whether a row is a repetition, or older than one that has arrived. A restarted agent counts from 1 again; its rows are
   * distinguished from late ones by their time. After `gpuRowTtlMs` without a row any row is accepted, as the agent's clock
   * may have been set back.
   */
  private isOld(invoker: string, { version, at }: NodeStatus, nowMs: number): boolean {
    const newest = this.newest.get(invoker);
    if (newest === undefined || nowMs - newest.seenMs >= gpuRowTtlMs) return false;
    const isSame = version === newest.version && at === newest.at;
    return isSame || (version < newest.version && at <= newest.at);
  }
}
