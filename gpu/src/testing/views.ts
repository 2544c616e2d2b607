import { nodeRow } from '../simulate/node-rows.js';
import type { ReportedPlace } from '../simulate/node-rows.js';
import { Ledger } from '../ledger/ledger.js';
import type { OpenLedger } from '../ledger/used-places.js';
import type { KnownRuns, View } from '../view/view.js';

/** The ledger of nodes with these GPUs and what is on them. */
export function ledgerWith(gpus: readonly ReportedPlace[]): OpenLedger {
  const ledger = new Ledger();
  const nodes = new Set(gpus.map(({ node }) => node));
  for (const node of nodes) {
    const there = gpus.filter((gpu) => gpu.node === node);
    ledger.heard(nodeRow(node, there, 0), 0);
  }
  return { ledger, isOpen: () => true, epoch: 0 };
}

/** Parts of a view; `gpus`: the places of its ledger, with what runs there. */
export interface ViewParts extends Partial<View> {
  gpus?: readonly ReportedPlace[];
}

/** By view, the GPUs that it was made of. */
const madeOf = new WeakMap<View, readonly ReportedPlace[]>();

/** A view at 0 ms of no GPUs and no tasks, but for `parts`; its ledger has the GPUs. */
export function viewOf({ gpus = [], ...parts }: ViewParts): View {
  const view: View = { at: 0, waiting: [], ledger: ledgerWith(gpus), runs: runsOn(gpus), ...parts };
  madeOf.set(view, gpus);
  return view;
}

/** The GPUs that a view of `viewOf` was made of. */
export function gpusOf(view: View): readonly ReportedPlace[] {
  return madeOf.get(view) ?? [];
}

/** The runs on these GPUs, by their tasks. */
export function runsOn(gpus: readonly ReportedPlace[]): KnownRuns {
  const runs = new Map(gpus.flatMap(({ running }) => running.map((one) => [one.task.id, one] as const)));
  return (task) => runs.get(task);
}
