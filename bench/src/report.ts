import { reaches } from './bars.js';
import type { Bar } from './bars.js';
import type { Measurement } from './bench.js';
import type { Machine } from './machine.js';
import type { Options } from './options.js';

/** Contents of results/NAME.json of bench or research. */
export interface Result {
  bench: string;
  commit: string;
  /** Day of the measurement, UTC, as 2026-11-24. */
  date: string;
  machine: Machine;
  /** Whether any part ran on a simulated device. */
  simulated: boolean;
  command: string;
  seed: number;
  metrics: Record<string, number>;
}

/**
 * Name of a run's result, in bench/results if all parts ran: `beside` for one beside other platforms, which must not
 * replace the bench's own.
 */
export function resultName({ bench, beside }: Pick<Options, 'bench' | 'beside'>): string {
  return beside.length > 0 ? 'beside' : bench;
}

/** Rounded to four significant digits; whole numbers stay as they are. */
export function rounded(value: number): number {
  return Number.isInteger(value) ? value : Number(value.toPrecision(4));
}

/**
 * Rounded measurements as a flat object. Throws Error for a name that occurs twice or a value that is not a finite
 * number.
 */
export function flatMetrics(measurements: readonly Measurement[]): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const { name, value } of measurements) {
    if (name in metrics) throw new Error(`metric '${name}' was measured twice`);
    if (!Number.isFinite(value)) throw new Error(`metric '${name}' is ${value}`);
    metrics[name] = rounded(value);
  }
  return metrics;
}

/** The measurements with their spread, bar and verdict, one line each. */
export function formatTable(bars: readonly Bar[], bench: string, measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ name, value, spread }) => {
    const bar = bars.find((candidate) => candidate.bench === bench && candidate.metric === name);
    return [
      name,
      String(rounded(value)),
      spread ? `${rounded(spread[0])} to ${rounded(spread[1])}` : '',
      bar ? `${bar.bound} ${bar.value}` : '',
      bar ? (reaches(bar, rounded(value)) ? 'reached' : 'MISSED') : '',
    ];
  });
  const table = [['metric', 'value', 'spread', 'bar', ''], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? [];
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
