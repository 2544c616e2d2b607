import { readTable } from '@gpuwhisk/bench/data/csv';

/** Requests of a function, or containers of an application, by minute from midnight on. */
export interface RequestTrace {
  name: string;
  minutes: readonly number[];
}

/** Two functions of Azure's trace of 2019 over seven days: requests a minute. Throws BenchDataError. */
export async function readWeekTraces(folder: string): Promise<RequestTrace[]> {
  return Promise.all(
    ['w3', 'w4'].map(async (name) => {
      const columns = { minute: 'number', invocations: 'number' } as const;
      const rows = await readTable(`traces/infless_azure_${name}_minute.csv`, columns, folder);
      return { name, minutes: rows.map(({ invocations }) => invocations) };
    }),
  );
}

/** Applications of day 1 of that trace: containers that each minute needs. Throws BenchDataError. */
export async function readDayTraces(folder: string): Promise<RequestTrace[]> {
  const minutes = Array.from({ length: 1440 }, (_, at) => `m${at + 1}`);
  const columns: Record<string, 'text' | 'number'> = { app: 'text' };
  for (const name of minutes) columns[name] = 'number';
  const rows = await readTable('traces/azure2019_app_containers_day1.csv', columns, folder);
  return rows.map((row) => ({ name: String(row['app']), minutes: minutes.map((name) => Number(row[name])) }));
}

/** Fraction of the minutes without a request. */
export function emptyPart({ minutes }: RequestTrace): number {
  return minutes.filter((one) => one === 0).length / minutes.length;
}
