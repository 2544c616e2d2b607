// Index of nodes that the ledger keeps up to date, for work that takes several places of one node.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are indices of the accounts, and nodes those of the bounds */
import type { PlaceAccount } from './account.js';

/** Looks at the places of one node, which have the orders from `from` up to and without `to`. */
type Look<Result> = (from: number, to: number) => Result;

/**
 * Nodes by their names, with the number of clients on each. A look at all nodes reads one number of each, so that nodes
 * that are empty cost next to nothing.
 */
export class NodeIndex {
  /** The first order of each node, and the number of places in the end. */
  private readonly bounds: Int32Array;
  private readonly nodeOf: Int32Array;
  /** Clients of each place, and of each node in all. */
  private readonly clients: Int32Array;
  private readonly clientsOf: Int32Array;
  /** Nodes of the same kinds of places, in the same order, have the same number. */
  private readonly kinds: Int32Array;
  private readonly kindCount: number;

  /** `accounts` by their `order`. Their modes and capacities must stay as they are. */
  constructor(accounts: readonly PlaceAccount[]) {
    const bounds: number[] = [];
    const kinds: number[] = [];
    const known = new Map<string, number>();
    this.nodeOf = new Int32Array(accounts.length);
    this.clients = Int32Array.from(accounts, ({ clients }) => clients);
    for (let from = 0; from < accounts.length;) {
      const { invoker } = accounts[from]!.place.node;
      let kind = '';
      let to = from;
      for (; to < accounts.length && accounts[to]!.place.node.invoker === invoker; to += 1) {
        const { mode, capacityMiB, place } = accounts[to]!;
        kind += `${mode} ${capacityMiB} ${place.device.type},`;
        this.nodeOf[to] = bounds.length;
      }
      const number = known.get(kind) ?? known.size;
      known.set(kind, number);
      bounds.push(from);
      kinds.push(number);
      from = to;
    }
    this.kinds = Int32Array.from(kinds);
    this.kindCount = known.size;
    this.bounds = Int32Array.from([...bounds, accounts.length]);
    this.clientsOf = new Int32Array(kinds.length);
    for (const { order, clients } of accounts) this.clientsOf[this.nodeOf[order]!]! += clients;
  }

  /** The clients of a place have changed. */
  changed({ order, clients }: PlaceAccount): void {
    this.clientsOf[this.nodeOf[order]!]! += clients - this.clients[order]!;
    this.clients[order] = clients;
  }

  /** Looks at all nodes with clients. */
  inUse(look: Look<void>): void {
    for (let node = 0; node < this.kinds.length; node += 1) {
      if (this.clientsOf[node]! > 0) look(this.bounds[node]!, this.bounds[node + 1]!);
    }
  }

  /** Looks at all nodes, but at empty ones of the same kinds of places only until `look` has taken one. */
  each(look: Look<boolean>): void {
    const isTaken = new Uint8Array(this.kindCount);
    for (let node = 0; node < this.kinds.length; node += 1) {
      const isEmpty = this.clientsOf[node] === 0;
      const kind = this.kinds[node]!;
      if (isEmpty && isTaken[kind] === 1) continue;
      if (look(this.bounds[node]!, this.bounds[node + 1]!) && isEmpty) isTaken[kind] = 1;
    }
  }
}
