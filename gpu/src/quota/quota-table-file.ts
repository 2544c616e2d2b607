import { crc32 } from '@gpuwhisk/common/bus/crc32';
import type { QuotaRow } from './quota-row.js';

const format = 'gpuwhisk quota table';
const version = 1;

/** Thrown for a text that is no quota table, or was damaged. */
export class QuotaTableError extends Error {
  override name = 'QuotaTableError';
}

/** A table's rows as text: a line that says what it is, with a checksum of the rest, and a line for each row. */
export function writeQuotaRows(rows: Iterable<QuotaRow>): string {
  const lines = Array.from(rows, (row) => JSON.stringify(row));
  return `${header(lines)}\n${lines.map((line) => `${line}\n`).join('')}`;
}

/** Reads what `writeQuotaRows` gave. Throws QuotaTableError. */
export function readQuotaRows(text: string): QuotaRow[] {
  const [first = '', ...lines] = text.split('\n');
  if (lines.pop() !== '') throw new QuotaTableError('the quota table is cut off');
  const found = parsed(first, 1);
  if (found.format !== format) throw new QuotaTableError('this is no quota table');
  if (found.version !== version) {
    throw new QuotaTableError(`the quota table is of version ${String(found.version)}, not ${version}`);
  }
  if (first !== header(lines)) throw new QuotaTableError('the quota table is damaged: its checksum is wrong');
  return lines.map((line, at) => checked(parsed(line, at + 2), at + 2));
}

function header(lines: readonly string[]): string {
  const body = lines.join('\n');
  return JSON.stringify({ format, version, rows: lines.length, crc32: crc32(Buffer.from(body)) });
}

function parsed(line: string, number: number): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new QuotaTableError(`the quota table, line ${number}: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null) {
    throw new QuotaTableError(`the quota table, line ${number}: no object`);
  }
  return value as Record<string, unknown>;
}

/** A checksum only tells that it is what somebody wrote: numbers that would spread are looked at. */
function checked(value: Record<string, unknown>, line: number): QuotaRow {
  const row = value as unknown as QuotaRow;
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
  if (!isSound) throw new QuotaTableError(`the quota table, line ${line}: this is no row`);
  return row;
}
