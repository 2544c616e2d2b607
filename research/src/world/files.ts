import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BenchDataError, parseTable } from '@gpuwhisk/bench/data/csv';
import type { Row } from '@gpuwhisk/bench/data/csv';
import type { Alone, MeasuredSet } from './sets.js';

/** The wanted columns of a table, as `parseTable` takes them. */
type Columns = Parameters<typeof parseTable>[1];

/** A line that a reader left out. */
export interface SkippedRow {
  row: string;
  why: string;
}

/** Contents of a data set in the normal form. */
export interface Contents {
  sets: MeasuredSet[];
  alone: Alone[];
  skipped: SkippedRow[];
}

/** A file that could not be used. */
export interface UnusedFile {
  file: string;
  why: string;
}

/** A table with the place of each line, `file:line`. */
export type PlacedRow<C extends Columns> = Row<C> & { at: string };

/**
 * Reads tables of one folder. Throws BenchDataError for a file that is missing, cut off (its last line has no end), or of
 * another form.
 */
export class Folder {
  constructor(private readonly folder: string) {}

  /** The text of a file. Throws BenchDataError. */
  async text(file: string): Promise<string> {
    let text: string;
    try {
      text = await readFile(join(this.folder, file), 'utf8');
    } catch (error) {
      const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      throw new BenchDataError(
        `'${file}' ${isMissing ? 'is not there' : `cannot be read: ${(error as Error).message}`}.`,
      );
    }
    if (!text.endsWith('\n')) throw new BenchDataError(`'${file}' is cut off: its last line has no end.`);
    return text;
  }

  /** The wanted columns of a CSV file, line by line. Throws BenchDataError. */
  async table<const C extends Columns>(file: string, columns: C): Promise<PlacedRow<C>[]> {
    return placed(await this.text(file), columns, file);
  }
}

/** The rows of a table with their places. Blank lines would shift the places, so they are refused. Throws BenchDataError. */
export function placed<const C extends Columns>(text: string, columns: C, file: string): PlacedRow<C>[] {
  if (/\n\r?\n/.test(text)) throw new BenchDataError(`'${file}' has a blank line.`);
  return parseTable(text, columns, file).map((row, index) => ({ ...row, at: `${file}:${index + 2}` }));
}

/** Whether a ratio of two times can be true: positive and finite. */
export const isRatio = (value: number): boolean => Number.isFinite(value) && value > 0;
