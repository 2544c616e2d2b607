import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Type of a column. A blank is undefined in an optional column and an error elsewhere. */
type ColumnKind = 'text' | 'number' | 'optionalText' | 'optionalNumber';

interface Cells {
  text: string;
  number: number;
  optionalText: string | undefined;
  optionalNumber: number | undefined;
}

/** The wanted columns, by their names in the file's header. */
type Columns = Readonly<Record<string, ColumnKind>>;

/** One line of a table, with the wanted columns. */
export type Row<C extends Columns> = { [Name in keyof C]: Cells[C[Name]] };

/** Thrown if BENCH_DATA is not set, a file of it is missing, or a file has another form than its reader expects. */
export class BenchDataError extends Error {
  override name = 'BenchDataError';
}

/** The folder with measured data that BENCH_DATA names. Throws BenchDataError if BENCH_DATA is not set. */
export function benchDataDir(env: NodeJS.ProcessEnv = process.env): string {
  const folder = env.BENCH_DATA;
  if (folder === undefined || folder === '') {
    throw new BenchDataError('This bench reads measured data: set BENCH_DATA to the folder that holds it.');
  }
  return folder;
}

/** The text of `file` (a path inside BENCH_DATA). Throws BenchDataError with file and folder if it cannot be read. */
export async function readBenchData(file: string, folder: string = benchDataDir()): Promise<string> {
  try {
    return await readFile(join(folder, file), 'utf8');
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no such file' : (error as Error).message;
    throw new BenchDataError(`Cannot read '${file}' in BENCH_DATA (${folder}): ${why}.`);
  }
}

/** The wanted columns of a CSV file in BENCH_DATA, line by line. Throws BenchDataError. */
export async function readTable<const C extends Columns>(
  file: string,
  columns: C,
  folder: string = benchDataDir(),
): Promise<Row<C>[]> {
  return parseTable(await readBenchData(file, folder), columns, file);
}

/**
 * The wanted columns of a text with a header line and a comma between fields. A field with a comma stands in double
 * quotes; in it, a doubled quote stands for one quote. Throws BenchDataError with file, line and column for a missing
 * column, a wrong number of fields, or a field of another type. NaN and infinity are no numbers here.
 */
export function parseTable<const C extends Columns>(text: string, columns: C, file: string): Row<C>[] {
  const [header, ...lines] = text.replace(/^\uFEFF/, '').split(/\r?\n/);
  const names = fieldsOf(header ?? '', file, 1);
  const wanted = Object.entries(columns).map(([name, kind]) => {
    const at = names.indexOf(name);
    if (at < 0) throw new BenchDataError(`'${file}' has no column '${name}': it has ${names.join(', ')}.`);
    return { name, kind, at };
  });
  const rows: Row<C>[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === '') continue;
    const fields = fieldsOf(line, file, index + 2);
    if (fields.length !== names.length) {
      throw new BenchDataError(`'${file}', line ${index + 2}: ${fields.length} fields instead of ${names.length}.`);
    }
    const row: Record<string, string | number | undefined> = {};
    for (const { name, kind, at } of wanted) {
      row[name] = cell(fields[at] ?? '', kind, () => `'${file}', line ${index + 2}, column '${name}'`);
    }
    rows.push(row as Row<C>);
  }
  return rows;
}

function cell(field: string, kind: ColumnKind, where: () => string): string | number | undefined {
  if (field === '') {
    if (kind === 'optionalText' || kind === 'optionalNumber') return undefined;
    throw new BenchDataError(`${where()}: a blank instead of a ${kind}.`);
  }
  if (kind === 'text' || kind === 'optionalText') return field;
  const value = Number(field);
  if (!Number.isFinite(value)) throw new BenchDataError(`${where()}: '${field}' is no number.`);
  return value;
}

function fieldsOf(line: string, file: string, lineNumber: number): string[] {
  if (!line.includes('"')) return line.split(',');
  const fields: string[] = [];
  const pattern = /(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))(?=,|$)/gy;
  while (pattern.lastIndex < line.length) {
    const match = pattern.exec(line);
    if (!match) throw new BenchDataError(`'${file}', line ${lineNumber}: a quote that is not closed or out of place.`);
    fields.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
  }
  return fields;
}

/** Columns of `interference/lucid_training_pairs.csv`. */
export const lucidPairColumns = {
  model_a: 'text',
  dataset_a: 'text',
  batch_a: 'number',
  amp_a: 'number',
  model_b: 'text',
  dataset_b: 'text',
  batch_b: 'number',
  amp_b: 'number',
  norm_speed_a: 'number',
  norm_speed_b: 'number',
} as const;

/** Columns of `interference/igniter_v100_mps_pairs.csv` that every reader needs; times in ms. */
export const igniterPairColumns = {
  model_a: 'text',
  batch_a: 'number',
  partition_a_pct: 'number',
  model_b: 'text',
  batch_b: 'number',
  partition_b_pct: 'number',
  lat_a_solo_ms: 'number',
  lat_a_co_ms: 'number',
  lat_b_solo_ms: 'number',
  lat_b_co_ms: 'number',
} as const;
