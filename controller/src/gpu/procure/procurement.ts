import { withoutUndefined } from '@gpuwhisk/common/collections';
import type { Logger } from '@gpuwhisk/common/logging';
import { gpuNoticeTable, gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeNotice } from '@gpuwhisk/common/gpu-nodes';
import type { NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ProcureOptions } from '@gpuwhisk/common/procure-schema';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import type { MachineState, ProcurementState } from '@gpuwhisk/gpu/view/view';
import { gpuDocument } from '../state/gpu-documents.js';
import type { GpuTable } from '../state/gpu-table.js';
import type { LeaseKeeper } from '../../cluster/lease.js';
import { MachineDocuments, storedMachines } from './machines.js';
import type { Machine } from './machines.js';
import { NoMachineError } from './provider.js';
import type { MarketPrices, Provider } from './provider.js';

/** Dependencies of Procurement. */
export interface ProcurementParts {
  provider: Provider;
  options: Pick<ProcureOptions, 'nodes' | 'pollMs' | 'bootMs'>;
  store: ArtifactStore;
  state: Pick<ClusterState, 'rows' | 'setRow' | 'deleteRow'>;
  table: Pick<GpuTable, 'nodes'>;
  lease: Pick<LeaseKeeper, 'epoch'>;
  workloads: { readonly shown: readonly Workload[] };
  /** Settles what an invoker that never comes back has left; false: not yet. */
  retire(invoker: string): Promise<boolean>;
  /** Told the price and the time of a machine until its invoker reported. */
  booted?(market: Market, pricePerHour: number, ms: number): void;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** The label of a node that names the request for its machine. */
export const machineLabel = 'machine';

const wantedId = 'procurement/wanted';
/** Interval of looks at prices, and of the policy's decisions without a change, ms. */
const minuteMs = 60_000;
/** How long a machine may report nothing until it counts as lost, ms: longer than an invoker takes to start again. */
const lostMs = 60_000;
/** How long one that is given back may report nothing until it counts as stopped, ms. */
const goneMs = 10_000;
/** Longest delay before an attempt that failed is repeated, ms. */
const longestDelayMs = 300_000;

/** In-memory facts about a machine; a new leader begins to count again. */
interface Watched {
  /** Monotonic ms since which its invoker has not reported; undefined: it reports. */
  silentSinceMs: number | undefined;
  /** When the node is taken away by its notice, which may be an operator's, epoch ms. */
  leavesAt: number | undefined;
  /** Failed attempts in a row, and when the next one is due, monotonic ms. */
  failures: number;
  dueMs: number;
}

/**
 * Rents machines for the policy, follows them until they report, and gives them back. Machines are documents, which the
 * leader carries on by what it sees: answers of the provider, notices, and rows of agents.
 */
export class Procurement {
  private readonly documents: MachineDocuments;
  private machines = new Map<string, Machine>();
  private readonly watched = new Map<string, Watched>();
  /** Requests of this process that the provider has not answered. */
  private readonly asking = new Set<string>();
  /** The epoch of the term whose documents were read. */
  private readEpoch: number | undefined;
  private wanted: number;
  private prices: MarketPrices = {};
  private readonly refusedAt: Partial<Record<Market, number>> = {};
  private pricesMs = -Infinity;
  private toldMs = -Infinity;
  private onChange: () => void = () => undefined;
  private timer: Timer | undefined;
  /** When the timer is due, monotonic ms. */
  private lookMs = Infinity;
  private looking: Promise<void> = Promise.resolve();
  private closed = false;

  constructor(private readonly parts: ProcurementParts) {
    this.documents = new MachineDocuments(parts.store);
    this.wanted = parts.options.nodes;
  }

  /** Begins to follow the machines. `onChange` is called after each change and each minute while this controller leads. */
  open(onChange: () => void): void {
    this.onChange = onChange;
    this.lookSoon(0);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.timer?.cancel();
    await this.looking;
    await this.parts.provider.close?.();
  }

  /** What policies see. */
  state(): ProcurementState {
    const { wanted, prices, refusedAt } = this;
    const machines: MachineState[] = [];
    for (const machine of this.machines.values()) if (machine.state !== 'ended') machines.push(this.stateOf(machine));
    return { wanted, machines, prices, refusedAt: { ...refusedAt } };
  }

  /** Price per hour of the machine of a node; undefined if the node is no rented machine, or its price is not known. */
  priceOf(node: string): number | undefined {
    const machine = this.ofNode(node);
    return machine && (machine.pricePerHour ?? this.prices[machine.market]);
  }

  /** The machines as they are stored, also where another controller leads. */
  list(): Promise<Machine[]> {
    return storedMachines(this.parts.store);
  }

  /** How many rented nodes there are to be. */
  async wantedNodes(): Promise<number> {
    const stored = await gpuDocument(this.parts.store, wantedId);
    return typeof stored?.nodes === 'number' ? stored.nodes : this.parts.options.nodes;
  }

  /** Stores how many rented nodes there are to be; the leader reads the number at its next look. */
  async setWanted(nodes: number): Promise<void> {
    const { store } = this.parts;
    const known = await gpuDocument(store, wantedId);
    await store.put('gpu', { ...known, _id: wantedId, nodes });
    this.wanted = nodes;
    this.onChange();
  }

  /**
   * Rents a machine. Resolves with undefined once the provider has accepted, else with the reason. Rejects if the store fails
   * or another controller is the leader.
   */
  async acquire(market: Market): Promise<string | undefined> {
    const { clock, random, lease } = this.parts;
    if (lease.epoch === undefined || lease.epoch !== this.readEpoch) throw new Error('another controller decides');
    const machine: Machine = { id: `gw-${random.hex(8)}`, market, askedAt: clock.now(), state: 'asked' };
    this.asking.add(machine.id);
    try {
      // Before the request: a process that ends within it leaves the document to the next leader.
      await this.write(machine);
      return await this.ask(machine);
    } finally {
      this.asking.delete(machine.id);
    }
  }

  /** Drains the machine of a node, and gives it back once nothing runs there. Resolves and rejects as `acquire` does. */
  async giveBack(node: string): Promise<string | undefined> {
    const { clock, workloads } = this.parts;
    const machine = this.ofNode(node);
    if (machine === undefined) return `node '${node}' is no machine that the platform has rented`;
    if (machine.state !== 'rented') return undefined;
    if (workloads.shown.some(({ invoker }) => invoker === node)) return 'a workload runs on it';
    await this.write({ ...machine, state: 'leaving' });
    await this.announce(node, { why: 'given-back', at: clock.now() });
    return undefined;
  }

  private ofNode(node: string): Machine | undefined {
    return [...this.machines.values()].find((one) => one.node === node);
  }

  private stateOf({ id, market, state, node, pricePerHour, ...machine }: Machine): MachineState {
    const { silentSinceMs, leavesAt = machine.leavesAt } = this.watchedOf(id);
    const isLost = silentSinceMs !== undefined && this.parts.clock.monotonicMs() - silentSinceMs >= lostMs;
    const shown = { asked: 'asked', leaving: 'leaving', ending: 'leaving', ended: 'leaving' } as const;
    const ofRented = node === undefined ? 'booting' : isLost ? 'lost' : 'up';
    return withoutUndefined({
      id,
      market,
      state: state === 'rented' ? ofRented : shown[state],
      node,
      leavesAt,
      pricePerHour,
    });
  }

  /** Asks the provider for a machine. Resolves with the reason if there is none. */
  private async ask(machine: Machine): Promise<string | undefined> {
    const { provider, clock, logger } = this.parts;
    const { id, market } = machine;
    try {
      const rented = await provider.acquire(id, market);
      const other = [...this.machines.values()].find((one) => one.machine === rented.machine && one.id !== id);
      if (other !== undefined) {
        // Releasing the request would end the machine of the other one.
        logger.error({ request: id, other: other.id, ...rented }, 'a provider gave one machine to two requests');
        await this.forget(machine);
        throw new Error(`machine '${rented.machine}' is rented for request '${other.id}' already`);
      }
      await this.write({ ...machine, ...rented, state: 'rented' });
      delete this.refusedAt[market];
      return undefined;
    } catch (error) {
      this.refusedAt[market] = clock.now();
      if (error instanceof NoMachineError) await this.forget(machine);
      // The request may have succeeded without an answer.
      else if (this.machines.has(id)) await this.write({ ...machine, state: 'ending' });
      return (error as Error).message;
    } finally {
      this.toldMs = -Infinity;
      this.lookSoon(0);
    }
  }

  /** Has the machines looked at within `inMs`. */
  private lookSoon(inMs: number): void {
    const { clock } = this.parts;
    const dueMs = clock.monotonicMs() + inMs;
    if (this.closed || (this.timer !== undefined && this.lookMs <= dueMs)) return;
    this.timer?.cancel();
    this.lookMs = dueMs;
    this.timer = clock.setBackgroundTimer(inMs, () => {
      this.timer = undefined;
      this.looking = this.looking
        .then(() => this.look())
        .catch((error: unknown) => {
          this.parts.logger.error({ error: String(error) }, 'the rented machines could not be looked at');
        });
      void this.looking.then(() => this.lookSoon(this.parts.options.pollMs));
    });
  }

  private async look(): Promise<void> {
    const { lease, clock } = this.parts;
    const { epoch } = lease;
    if (epoch === undefined || this.closed) {
      this.readEpoch = undefined;
      return;
    }
    if (epoch !== this.readEpoch) {
      this.machines = new Map((await this.documents.read()).map((one) => [one.id, one]));
      this.readEpoch = epoch;
      this.toldMs = -Infinity;
    }
    const wanted = await this.wantedNodes();
    if (wanted !== this.wanted) this.toldMs = -Infinity;
    this.wanted = wanted;
    await this.readPrices();
    await this.readNotices();
    if (this.machines.size > 0) {
      this.watchNotices(await this.parts.state.rows(gpuNoticeTable));
      const rows = this.parts.table.nodes();
      for (const id of [...this.machines.keys()]) await this.carryOn(id, rows);
    }
    const nowMs = clock.monotonicMs();
    if (nowMs - this.toldMs < minuteMs) return;
    this.toldMs = nowMs;
    this.onChange();
  }

  private async readPrices(): Promise<void> {
    const { provider, clock, logger } = this.parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.pricesMs < minuteMs) return;
    this.pricesMs = nowMs;
    try {
      this.prices = await provider.prices();
    } catch (error) {
      logger.warn({ error: String(error) }, 'the prices of machines cannot be read: the last ones count');
    }
  }

  private async readNotices(): Promise<void> {
    const { provider, clock, logger } = this.parts;
    if (this.machines.size === 0) return;
    let leavesAt: Map<string, number>;
    try {
      leavesAt = new Map((await provider.notices()).map((notice) => [notice.machine, notice.leavesAt]));
    } catch (error) {
      logger.warn({ error: String(error) }, 'the notices of machines cannot be read');
      return;
    }
    for (const id of [...this.machines.keys()]) {
      const known = this.machines.get(id);
      if (known?.state !== 'rented' || known.machine === undefined) continue;
      const at = leavesAt.get(known.machine);
      if (at === known.leavesAt) continue;
      const { leavesAt: before, ...machine } = known;
      // A machine that has been taken away is in no list.
      if (at === undefined && before !== undefined && before <= clock.now()) continue;
      logger.warn(
        { ...machine, leavesAt: at },
        at === undefined ? 'a notice was withdrawn' : 'a machine will be revoked',
      );
      await this.write({ ...machine, ...(at !== undefined && { leavesAt: at }) });
      if (machine.node !== undefined)
        await this.announce(machine.node, at === undefined ? undefined : noticeOf(at, clock));
      this.toldMs = -Infinity;
    }
  }

  /** Notes the notices of nodes. A node may be gone before its agent reports one. */
  private watchNotices(notices: ReadonlyMap<string, JsonValue>): void {
    for (const { id, node = '' } of this.machines.values()) {
      const { leavesAt } = (notices.get(node) ?? {}) as unknown as Partial<NodeNotice>;
      const watched = this.watchedOf(id);
      if (watched.leavesAt === leavesAt) continue;
      watched.leavesAt = leavesAt;
      this.toldMs = -Infinity;
    }
  }

  /** Carries one machine on by what is seen. A failure is logged, and repeated after a growing delay. */
  private async carryOn(id: string, rows: readonly NodeStatus[]): Promise<void> {
    const { clock, logger, options } = this.parts;
    const machine = this.machines.get(id);
    if (machine === undefined) return;
    const watched = this.watchedOf(machine.id);
    const nowMs = clock.monotonicMs();
    const row = rows.find(({ labels }) => labels?.[machineLabel] === machine.id);
    const silentMs = watched.silentSinceMs === undefined ? 0 : nowMs - watched.silentSinceMs;
    watched.silentSinceMs = row === undefined ? (watched.silentSinceMs ?? nowMs) : undefined;
    if (nowMs < watched.dueMs) return;
    try {
      await this.step(machine, row, silentMs);
      watched.failures = 0;
    } catch (error) {
      watched.failures += 1;
      watched.dueMs = nowMs + Math.min(longestDelayMs, options.pollMs * 2 ** Math.min(watched.failures, 20));
      logger.error({ ...machine, error: String(error) }, 'a rented machine could not be carried on; again later');
    }
  }

  private async step(machine: Machine, row: NodeStatus | undefined, silentMs: number): Promise<void> {
    const { provider, retire } = this.parts;
    switch (machine.state) {
      case 'asked':
        // An earlier leader has asked for it, and may have got no answer.
        if (!this.asking.has(machine.id)) await this.ask(machine);
        return;
      case 'rented':
        return this.follow(machine, row, silentMs);
      case 'leaving':
        if (row === undefined ? silentMs >= goneMs : isEmpty(row)) await this.write({ ...machine, state: 'ending' });
        return;
      case 'ending':
        await provider.release(machine.id, machine.machine);
        await this.write({ ...machine, state: 'ended' });
        return;
      case 'ended':
        if (machine.node !== undefined) {
          if (!(await retire(machine.node))) return;
          await this.announce(machine.node, undefined);
          await this.parts.state.deleteRow(gpuUseTable, machine.node);
        }
        await this.forget(machine);
    }
  }

  /** Follows a machine that starts or serves; it had not reported for `silentMs`. */
  private async follow(machine: Machine, row: NodeStatus | undefined, silentMs: number): Promise<void> {
    const { clock, options, logger } = this.parts;
    const { node, leavesAt, market } = machine;
    const isTaken = clock.now() >= (leavesAt ?? this.watchedOf(machine.id).leavesAt ?? Infinity);
    if (row !== undefined && node === undefined) {
      const price = machine.pricePerHour ?? this.prices[market];
      if (price !== undefined) this.parts.booted?.(market, price, silentMs);
      await this.write({ ...machine, node: row.invoker });
      if (leavesAt !== undefined) await this.announce(row.invoker, noticeOf(leavesAt, clock));
      this.toldMs = -Infinity;
    } else if (row === undefined && (isTaken || silentMs >= (node === undefined ? options.bootMs : lostMs))) {
      const why = isTaken ? 'was revoked' : node === undefined ? 'did not start in time' : 'reports no more';
      logger.warn({ ...machine, silentMs }, `a rented machine ${why}: it is given back`);
      await this.write({ ...machine, state: 'ending' });
      this.toldMs = -Infinity;
    }
  }

  private watchedOf(id: string): Watched {
    let watched = this.watched.get(id);
    if (watched === undefined) {
      watched = { silentSinceMs: undefined, leavesAt: undefined, failures: 0, dueMs: -Infinity };
      this.watched.set(id, watched);
    }
    return watched;
  }

  /** Sets or withdraws the notice of a node, which its agent follows. */
  private async announce(node: string, notice: NodeNotice | undefined): Promise<void> {
    const { state } = this.parts;
    if (notice === undefined) await state.deleteRow(gpuNoticeTable, node);
    else await state.setRow(gpuNoticeTable, node, notice as unknown as JsonValue);
  }

  private async write(machine: Machine): Promise<void> {
    this.machines.set(machine.id, machine);
    await this.documents.write(machine);
  }

  private async forget({ id }: Machine): Promise<void> {
    await this.documents.remove(id);
    this.machines.delete(id);
    this.watched.delete(id);
  }
}

function noticeOf(leavesAt: number, clock: Clock): NodeNotice {
  return { why: 'revoked', at: clock.now(), leavesAt };
}

function isEmpty({ residents, inHand = [] }: NodeStatus): boolean {
  return inHand.length === 0 && residents.every(({ activations }) => activations.length === 0);
}
