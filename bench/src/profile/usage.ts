// What the threads of a platform have used, from /proc.
import { readdirSync, readFileSync } from 'node:fs';
import { readTree } from '../processes.js';

/** What threads have used since their start. */
export interface Usage {
  /** Time on a processor, µs. */
  cpuUs: number;
  /** Calls that read or write, of files, pipes and sockets. */
  reads: number;
  writes: number;
  /** Times that a thread gave up its processor to wait: as many wake-ups follow. */
  waits: number;
}

/** Threads of a platform: the server's main thread, its thread of records, its other threads, and its processes by program. */
export type ThreadPart = 'server' | 'record thread' | 'other threads' | 'proxy' | 'runtime' | 'launcher';

/** The parts of a platform's processes in the order of tables. */
export const threadParts: readonly ThreadPart[] = [
  'server',
  'record thread',
  'other threads',
  'proxy',
  'runtime',
  'launcher',
];

/** Usage of each thread of a platform at one moment. */
export type Threads = ReadonlyMap<number, { part: ThreadPart; usage: Usage }>;

/** Usage of all threads of the platform `pid`. */
export function readThreads(pid: number): Threads {
  const threads = new Map<number, { part: ThreadPart; usage: Usage }>();
  const add = (process: number, partOf: (tid: number) => ThreadPart): void => {
    for (const tid of threadsOf(process)) {
      const usage = usageOf(process, tid);
      if (usage !== undefined) threads.set(tid, { part: partOf(tid), usage });
    }
  };
  add(pid, (tid) => (tid === pid ? 'server' : isOfRecords(pid, tid) ? 'record thread' : 'other threads'));
  for (const { pid: child } of readTree(pid).descendants) add(child, () => partOfProgram(child));
  return threads;
}

/** Whether a thread of the server stores records, by the name that it gives itself. */
function isOfRecords(pid: number, tid: number): boolean {
  return read(`/proc/${pid}/task/${tid}/comm`)?.trim() === 'records';
}

function partOfProgram(pid: number): ThreadPart {
  const name = read(`/proc/${pid}/comm`)?.trim();
  if (name === 'sandbox') return 'launcher';
  return name === 'proxy' ? 'proxy' : 'runtime';
}

/** What was used between two moments, by part; threads that ended meanwhile are left out. */
export function usedBetween(before: Threads, after: Threads): Map<ThreadPart, Usage> {
  const used = new Map<ThreadPart, Usage>(
    threadParts.map((part) => [part, { cpuUs: 0, reads: 0, writes: 0, waits: 0 }]),
  );
  for (const [tid, { part, usage }] of after) {
    const earlier = before.get(tid)?.usage;
    const sum = used.get(part);
    if (sum === undefined) continue;
    sum.cpuUs += usage.cpuUs - (earlier?.cpuUs ?? 0);
    sum.reads += usage.reads - (earlier?.reads ?? 0);
    sum.writes += usage.writes - (earlier?.writes ?? 0);
    sum.waits += usage.waits - (earlier?.waits ?? 0);
  }
  return used;
}

/** Usage of a thread; undefined if it has ended. */
function usageOf(pid: number, tid: number): Usage | undefined {
  const folder = `/proc/${pid}/task/${tid}`;
  const [schedule, io, status] = ['schedstat', 'io', 'status'].map((name) => read(`${folder}/${name}`));
  if (schedule === undefined || io === undefined || status === undefined) return undefined;
  return parseUsage(schedule, io, status);
}

/** Reads schedstat, io and status of a thread (proc(5)). Throws Error for a missing field. */
export function parseUsage(schedule: string, io: string, status: string): Usage {
  const field = (text: string, name: string): number => {
    const [, value] = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(text) ?? [];
    if (value === undefined) throw new Error(`/proc has no field '${name}'`);
    return Number(value);
  };
  return {
    cpuUs: Number.parseInt(schedule, 10) / 1000,
    reads: field(io, 'syscr'),
    writes: field(io, 'syscw'),
    waits: field(status, 'voluntary_ctxt_switches'),
  };
}

function threadsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return []; // The process has ended.
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined; // The thread has ended.
  }
}
