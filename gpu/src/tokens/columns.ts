/**
 * What the token machine reads and writes: one array a field, one place a client. On a node the arrays lie in memory
 * that the ticking thread shares (see native/token-server/board.h), which has them in this order.
 */
export const columnNames = [
  // Written by the agent.
  /** Changes whenever another client takes the place; 0 where it is free. */
  'epoch',
  /** Which GPU: any number, equal for those that share one. */
  'gpu',
  /** Fractions of its solo rate: request ≤ limit ≤ 1. */
  'request',
  'limit',
  /** Blocks that it launches in a period when alone at 100 %; 0: to be learned. */
  'maxTokens',
  /** Part by which its launch cycles may grow before it counts as violated; 0 for a client without an SLO. */
  'violation',
  // Written by the ticking thread.
  /** Blocks launched in the last period. */
  'used',
  /** 1 where a launch had to wait in it. */
  'held',
  /** Launch cycles that have ended so far, and the last one's length and batch size. */
  'cycles',
  'cycleMs',
  'cycleBatch',
  /** For how long the present cycle has run, 0 between cycles, and its batch size. */
  'runningMs',
  'runningBatch',
  // Written by the machine.
  /** Blocks for the next period; Infinity: as many as it likes. */
  'budget',
  /** The solo rate that it works with, given or learned; 0 while it is not known. */
  'soloRate',
] as const;

export type ColumnName = (typeof columnNames)[number];
export type TokenColumns = Readonly<Record<ColumnName, Float64Array>>;

/** Bytes that the columns of `places` clients take. */
export const columnsBytes = (places: number): number => columnNames.length * places * Float64Array.BYTES_PER_ELEMENT;

/** Columns over `buffer` from `offset` on, one after the other. Throws RangeError if they do not fit. */
export function columnsOver(buffer: ArrayBufferLike, offset: number, places: number): TokenColumns {
  const entries = columnNames.map((name, i) => [
    name,
    new Float64Array(buffer, offset + i * places * Float64Array.BYTES_PER_ELEMENT, places),
  ]);
  return Object.fromEntries(entries) as TokenColumns;
}
