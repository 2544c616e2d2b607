// Decisions of the GPU scheduler, as they are kept and shown.
import type { Placement, Rejection } from './gpu.js';

/** A decision with all it weighed. */
export interface DecisionRecord {
  /** Epoch ms. */
  at: number;
  activationId: string;
  action: string;
  /** That it runs for. */
  namespace: string;
  /** The policy's name. */
  policy: string;
  /** Absent: refused, for `reason`. */
  placement?: Placement;
  reason: string;
  rejected: Rejection[];
  /** From acceptance to result, ms; absent: best effort. */
  sloMs?: number;
  /** Activations that waited when it came; absent: not told. */
  ahead?: number;
  /** Why most places did not take it when that was last decided before; absent: it did not wait. */
  waitedFor?: string;
  /** Absent until the run of its placement has ended, and where nothing is known of that. */
  run?: RunFacts;
}

/** What the leader has seen of a run. */
export interface RunFacts {
  /** The time alone on a whole GPU that was measured before it, ms; absent: never measured. */
  aloneMs?: number;
  /** Time of the run over that time; absent: one of them is not known, or the run loaded its code. */
  slowdown?: number;
  /** Functions that ran beside it, with the part of its time, most first; eight at most. Namespace '': hidden from the viewer. */
  beside: { action: string; namespace: string; part: number }[];
  /** Number of workloads on its GPU; absent: none. */
  workloads?: number;
  /** Other processes were on its GPU, or runs of which nothing is known. */
  unknownBeside?: true;
}
