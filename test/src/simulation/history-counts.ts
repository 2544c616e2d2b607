import type { Ledger } from './ledger.js';

/** Counts of a history that kept every promise. */
export interface HistoryCounts {
  calls: number;
  accepted: number;
  completed: number;
  refused: number;
  runs: number;
  /** Requests that ran in batches. */
  batched: number;
  /** Placements that the agent refused. */
  gpuRefusals: number;
  /** Loads of code into a container that had other code before. */
  reloads: number;
  records: number;
  crashes: number;
  /** Crashes while the platform was starting. */
  crashedStarts: number;
  stops: number;
  damage: number;
  /** Records that existed before they expired. */
  expired: number;
}

/** Sums up the observations of callers and containers; `faults` counts the faults of the platform. */
export function countsOf(
  ledger: Ledger,
  faults: Pick<HistoryCounts, 'crashes' | 'crashedStarts' | 'stops' | 'damage' | 'expired'>,
): HistoryCounts {
  const calls = [...ledger.calls.values()];
  const answered = (type: string): number => calls.filter(({ answer }) => answer?.type === type).length;
  return {
    calls: calls.length,
    accepted: answered('accepted'),
    completed: answered('completed'),
    refused: answered('refused'),
    runs: ledger.runCount,
    batched: ledger.batched,
    gpuRefusals: ledger.gpuRefusals,
    reloads: ledger.reloads,
    records: ledger.records.size,
    ...faults,
  };
}
