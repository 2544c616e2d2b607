import type { QuotaRow } from './quota-row.js';

/** Thrown for what is no row of a quota table. */
export class QuotaRowError extends Error {
  override name = 'QuotaRowError';
}

/** A stored row: numbers that would spread are looked at. Throws QuotaRowError. */
export function readQuotaRow(value: unknown): QuotaRow {
  const row = value as QuotaRow | null;
  if (typeof row !== 'object' || row === null) throw new QuotaRowError('this is no row of a quota table');
  const jobs = Array.isArray(row.jobs) ? row.jobs.length : 0;
  const areNumbers = (values: unknown): boolean =>
    Array.isArray(values) && values.length === jobs && values.every((one) => typeof one === 'number' && one > 0);
  const isSound =
    jobs > 0 &&
    typeof row.gpuType === 'string' &&
    typeof row.mode === 'string' &&
    Number.isInteger(row.driverMajor) &&
    row.jobs.every(({ id, function: name }) => typeof id === 'string' && typeof name === 'string') &&
    Array.isArray(row.points) &&
    row.points.every(
      (point) =>
        areNumbers(point.shares) &&
        areNumbers(point.slowdowns) &&
        Array.isArray(point.samples) &&
        point.samples.length > 0 &&
        point.samples.every(areNumbers),
    );
  if (!isSound) throw new QuotaRowError('this is no row of a quota table');
  return row;
}
