// Views as JSON, for files and for decisions that are made again (`gpu/src/testing/saved-pass.ts`).
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { Reservation } from '../ledger/occupancy.js';
import type { OpenLedger } from '../ledger/used-places.js';
import type { FunctionState, KnownRuns, View } from './view.js';

/** Format and version of saved views. */
export const [viewFormat, viewVersion] = ['gpuwhisk view', 2] as const;

/** Bounds of a saved view; parts beyond them are left out. */
interface ViewBounds {
  /** Tasks, nodes with what is on them, instances, functions, of each kind. */
  mostEach: number;
}

/** The ledger of a saved view. */
export interface SavedLedger {
  epoch: number;
  rows: readonly NodeStatus[];
  /** Nodes that may be chosen. */
  open: readonly string[];
  held: readonly Reservation[];
  /** Places in the order in which a first fit tries them. */
  byLoad: readonly string[];
}

/** Pairs of position and count: most seconds and minutes have no arrivals. */
export type Counts = (readonly [number, number])[];

/** A function of a saved view. */
export interface SavedFunction extends Omit<FunctionState, 'arrivals'> {
  bySecond: Counts;
  byMinute: Counts;
}

/** An activation, and what is known of its run. */
export type SavedRun = readonly [string, NonNullable<ReturnType<KnownRuns>>];

/** A saved view without its format. */
export interface SavedBody extends Omit<View, 'ledger' | 'functions' | 'runs'> {
  runs: readonly SavedRun[];
  ledger: SavedLedger;
  functions?: readonly SavedFunction[];
}

/**
 * A view as JSON. Kinds of parts of which some are beyond `bounds` are named in `leftOut`, with their
 * number; so is the time until which the ledger waits for lost runs, which no decision reads.
 */
export function encodeView(view: View, { mostEach }: ViewBounds = { mostEach: Infinity }): JsonObject {
  const leftOut: Record<string, number> = {};
  const bounded = <One>(kind: string, all: readonly One[]): readonly One[] => {
    if (all.length <= mostEach) return all;
    leftOut[kind] = all.length - mostEach;
    return all.slice(0, mostEach);
  };
  const { at, waiting, ledger, instances, functions, nodes, devices, workloads, procurement } = view;
  const body: SavedBody = {
    at,
    waiting: bounded('waiting', waiting),
    ledger: savedLedger(ledger, bounded),
    runs: bounded('runs', knownRuns(view)),
    ...(instances && { instances: bounded('instances', instances) }),
    ...(functions && { functions: bounded('functions', functions).map((one) => savedFunction(one, at)) }),
    ...(nodes && { nodes: bounded('nodes', nodes) }),
    ...(devices && { devices: bounded('devices', devices) }),
    ...(workloads && { workloads: bounded('workloads', workloads) }),
    ...(procurement && { procurement: { ...procurement, machines: bounded('machines', procurement.machines) } }),
  };
  return { format: viewFormat, version: viewVersion, leftOut, ...(toPlain(body) as JsonObject) };
}

function savedLedger(
  { ledger, isOpen, epoch }: OpenLedger,
  bounded: <One>(kind: string, all: readonly One[]) => readonly One[],
): SavedLedger {
  const rows = bounded('rows', ledger.rows());
  const open = rows.map(({ invoker }) => invoker).filter(isOpen);
  const held = bounded('held', ledger.reservations());
  return { epoch, rows, open, held, byLoad: bounded('byLoad', ledger.byLoadIds()) };
}

function knownRuns({ ledger: { ledger }, runs }: View): SavedRun[] {
  const told = ledger.rows().flatMap(({ residents }) => residents.flatMap(({ activations }) => activations));
  const activations = new Set([...told, ...ledger.reservations().map(({ activationId }) => activationId)]);
  return [...activations].flatMap((id) => {
    const known = runs(id);
    return known === undefined ? [] : [[id, { task: known.task, startedAt: known.startedAt }] as const];
  });
}

function savedFunction({ arrivals, ...known }: FunctionState, at: number): SavedFunction {
  return { ...known, bySecond: countsOf(arrivals.bySecond(at)), byMinute: countsOf(arrivals.byMinute(at)) };
}

function countsOf(counts: Uint32Array): Counts {
  return Array.from(counts, (count, at) => [at, count] as const).filter(([, count]) => count > 0);
}

/**
 * A copy of `value` as JSON. Numbers that JSON lacks become `{"$number": "NaN"}`, sets `{"$set": [...]}`; fields that are
 * undefined are left out.
 */
export function toPlain(value: unknown): JsonValue {
  if (typeof value === 'number') return Number.isFinite(value) ? value : { $number: String(value) };
  if (typeof value !== 'object' || value === null) return value as JsonValue;
  if (value instanceof Set) return { $set: Array.from(value, toPlain) };
  if (Array.isArray(value)) return value.map((one) => (one === undefined ? null : toPlain(one)));
  const entries = Object.entries(value).filter(([, one]) => one !== undefined && typeof one !== 'function');
  return Object.fromEntries(entries.map(([name, one]) => [name, toPlain(one)]));
}

/** The copy of a value that `toPlain` was given. */
export function fromPlain(value: JsonValue): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(fromPlain);
  const { $number: number, $set: set } = value;
  if (typeof number === 'string') return Number(number);
  if (Array.isArray(set)) return new Set(set.map(fromPlain));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fromPlain(one)]));
}
