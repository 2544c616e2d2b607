// What nodes cost, and which part of it each function is charged: price × share of the node's GPU-seconds.
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';

/** A function's use of GPUs, and its cost in the operator's currency. */
export interface FunctionCost {
  namespace: string;
  action: string;
  gpuSeconds: number;
  cost: number;
}

/** The hours of nodes of one market. `idle` and `boot` are the parts of `cost` that no function is charged. */
export interface MarketCost {
  hours: number;
  cost: number;
  idle: number;
  boot: number;
}

/** The market of a node; `own`: it belongs to the operator. */
export type CostMarket = 'spot' | 'on-demand' | 'own';

/** Costs of a span of time. */
export interface CostBook {
  /** By namespace and action. */
  functions: Map<string, FunctionCost>;
  markets: Map<CostMarket, MarketCost>;
}

/** The last charged counts of a node. */
export interface SeenUse {
  start: string;
  upMs: number;
  /** By namespace and action, ms of a whole GPU. */
  used: ReadonlyMap<string, number>;
}

/** A book without entries. */
export function newCostBook(): CostBook {
  return { functions: new Map(), markets: new Map() };
}

const hourMs = 3_600_000;

/** Key of a function in a book. Names contain no line ends. */
const keyOf = (namespace: string, action: string): string => `${namespace}\n${action}`;

function marketOf(book: CostBook, market: CostMarket): MarketCost {
  const known = book.markets.get(market) ?? { hours: 0, cost: 0, idle: 0, boot: 0 };
  book.markets.set(market, known);
  return known;
}

/** A duration or price that counts; others are 0. */
const sound = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;

/**
 * Adds to `book` what a node has used since `seen` was charged, and returns what is charged from now on. The counts of another
 * start of the agent are new as a whole, and counts that are smaller than before add nothing. Shares that add up to more than
 * the node's GPU-seconds divide its whole cost.
 */
export function charge(book: CostBook, use: NodeUse, seen: SeenUse | undefined): SeenUse {
  const before = seen?.start === use.start ? seen : undefined;
  const upMs = Math.max(0, sound(use.upMs) - (before?.upMs ?? 0));
  const used = new Map<string, number>();
  const added: { namespace: string; action: string; gpuMs: number }[] = [];
  for (const [namespace, action, total] of use.used) {
    const key = keyOf(namespace, action);
    const least = before?.used.get(key) ?? 0;
    const gpuMs = Math.max(0, sound(total) - least);
    used.set(key, Math.max(sound(total), least));
    if (gpuMs > 0) added.push({ namespace, action, gpuMs });
  }
  const nodeCost = (sound(use.pricePerHour) * upMs) / hourMs;
  const sumMs = added.reduce((sum, { gpuMs }) => sum + gpuMs, 0);
  const wholeMs = Math.max(sumMs, upMs * Math.max(1, sound(use.devices)));
  let charged = 0;
  for (const { namespace, action, gpuMs } of added) {
    const cost = wholeMs === 0 ? 0 : (nodeCost * gpuMs) / wholeMs;
    charged += cost;
    addFunction(book, { namespace, action, gpuSeconds: gpuMs / 1000, cost });
  }
  const market = marketOf(book, use.market ?? 'own');
  market.hours += upMs / hourMs;
  market.cost += nodeCost;
  market.idle += Math.max(0, nodeCost - charged);
  return { start: use.start, upMs: Math.max(sound(use.upMs), before?.upMs ?? 0), used };
}

/** Adds the cost of a machine before its invoker reported, which no function is charged. */
export function chargeBoot(book: CostBook, market: CostMarket, pricePerHour: number, ms: number): void {
  const cost = (sound(pricePerHour) * sound(ms)) / hourMs;
  const known = marketOf(book, market);
  known.hours += sound(ms) / hourMs;
  known.cost += cost;
  known.boot += cost;
}

/** Adds all entries of `from` to `book`. */
export function addBook(book: CostBook, from: CostBook): void {
  for (const one of from.functions.values()) addFunction(book, one);
  for (const [name, one] of from.markets) {
    const market = marketOf(book, name);
    for (const part of ['hours', 'cost', 'idle', 'boot'] as const) market[part] += one[part];
  }
}

function addFunction({ functions }: CostBook, { namespace, action, gpuSeconds, cost }: FunctionCost): void {
  const key = keyOf(namespace, action);
  const known = functions.get(key) ?? { namespace, action, gpuSeconds: 0, cost: 0 };
  functions.set(key, { ...known, gpuSeconds: known.gpuSeconds + gpuSeconds, cost: known.cost + cost });
}
