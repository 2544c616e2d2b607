import { readdir, readFile, readlink } from 'node:fs/promises';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { ProcessStateCheck } from '../protocol/connected-container.js';

const firstSettleMs = 1000;
const settleMs = 250;
const pollMs = 5;
/** Time after which a wait for a lock or a condition of the process's own threads counts as its rest. */
const lockRestMs = 100;
/** Longest chain of processes from the first one to the runtime, with one to spare. */
const maxDepth = 4;
const futex = process.arch === 'x64' ? '202' : '98';
const futexPrivateFlag = 0x80;
/** System calls in which a thread waits, by number: index of the time-limit argument, and its value for no limit. */
const waits: ReadonlyMap<string, { argument: number; none: RegExp }> = new Map(
  process.arch === 'x64'
    ? [
        ['232', { argument: 3, none: /^0x(ffffffff)?ffffffff$/ }], // epoll_wait
        ['281', { argument: 3, none: /^0x(ffffffff)?ffffffff$/ }], // epoll_pwait
        [futex, { argument: 3, none: /^0x0$/ }],
      ]
    : [
        ['22', { argument: 3, none: /^0x(ffffffff)?ffffffff$/ }], // epoll_pwait
        [futex, { argument: 3, none: /^0x0$/ }],
      ],
);

/** State of a container's processes at one moment. */
interface ProcessState {
  processes: string;
  threads: string;
  descriptors: string;
  timers: string;
  /** The wait without a time limit of the first thread, which runs an event loop's timers; undefined if it does not wait. */
  wait: string | undefined;
  /** Whether it waits for a lock or a condition that only threads of its own process release. */
  waitsForLock: boolean;
}

/**
 * Records the state of the processes from the host's process `firstPid` down to the runtime, which must form a chain, for a
 * later comparison. Undefined if the kernel does not show the whole state, or if the runtime does not come to rest within 1
 * s.
 */
export async function observeProcessState(firstPid: number, clock: Clock): Promise<ProcessStateCheck | undefined> {
  try {
    const chain = await chainBelow(firstPid);
    const runtime = chain.at(-1) ?? firstPid;
    const untilMs = clock.monotonicMs() + firstSettleMs;
    let first = await readState(chain, runtime);
    let sinceMs = clock.monotonicMs();
    while (!isAtRest(first, clock.monotonicMs() - sinceMs)) {
      if (clock.monotonicMs() >= untilMs) return undefined;
      await sleep(clock, pollMs);
      const now = await readState(chain, runtime);
      if (now.wait !== first.wait) sinceMs = clock.monotonicMs();
      first = now;
    }
    return { differences: () => differences(chain, runtime, first, clock) };
  } catch {
    return undefined; // A process cannot be read: the container will not serve a second action.
  }
}

/**
 * Whether the first thread waits, `forMs` by now, for what it waits for between runs: events, or the end of another
 * thread. At its start it waits now and then for a lock, too, for a few ms.
 */
function isAtRest({ wait, waitsForLock }: ProcessState, forMs: number): boolean {
  return wait !== undefined && (!waitsForLock || forMs >= lockRestMs);
}

async function differences(
  chain: readonly number[],
  runtime: number,
  first: ProcessState,
  clock: Clock,
): Promise<string[]> {
  const untilMs = clock.monotonicMs() + settleMs;
  for (;;) {
    let found: string[];
    try {
      found = compare(first, await readState(chain, runtime));
    } catch (error) {
      return [`processes that cannot be seen (${(error as Error).message})`];
    }
    if (found.length === 0 || clock.monotonicMs() >= untilMs) return found;
    await sleep(clock, pollMs);
  }
}

function compare(first: ProcessState, now: ProcessState): string[] {
  const found: string[] = [];
  for (const what of ['processes', 'threads', 'descriptors', 'timers'] as const) {
    if (now[what] !== first[what]) found.push(what);
  }
  if (now.wait !== first.wait) found.push('a thread that does not wait as before');
  return found;
}

async function readState(chain: readonly number[], runtime: number): Promise<ProcessState> {
  const folder = `/proc/${runtime}`;
  const [processes, threads, descriptors, timers, call] = await Promise.all([
    Promise.all(chain.map(processOf)),
    readdir(`${folder}/task`),
    descriptorsOf(folder),
    readFile(`${folder}/timers`, 'utf8'),
    readFile(`${folder}/syscall`, 'utf8'),
  ]);
  return {
    processes: processes.join('; '),
    threads: threads.join(' '),
    descriptors,
    timers,
    wait: endlessWait(call),
    waitsForLock: isLockWait(call),
  };
}

/**
 * The process ids from `first` down to the one without a child. Throws if a process has several children or the chain is too
 * long.
 */
async function chainBelow(first: number): Promise<number[]> {
  const chain = [first];
  for (let pid = first; ;) {
    const [child, ...others] = await childrenOf(pid);
    if (child === undefined) return chain;
    if (others.length > 0 || chain.length > maxDepth) throw new Error(`process ${first} has several children`);
    chain.push(child);
    pid = child;
  }
}

/** A process as text: its id, its start time (which tells it from a later process of that id) and its children. */
async function processOf(pid: number): Promise<string> {
  const [stat, children] = await Promise.all([readFile(`/proc/${pid}/stat`, 'utf8'), childrenOf(pid)]);
  // The name, in parentheses, may contain any character.
  const [, , , , , , , , , , , , , , , , , , , startTime] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return `${pid} ${startTime} ${children.join(' ')}`;
}

/** Children of all threads of a process. */
async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(threads.map((thread) => childrenOfThread(`/proc/${pid}/task/${thread}/children`)));
  return lists.flatMap((list) => list.split(' ').map(Number)).filter((child) => child > 0);
}

async function childrenOfThread(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return ''; // The thread has just ended.
    throw error;
  }
}

async function descriptorsOf(folder: string): Promise<string> {
  const numbers = await readdir(`${folder}/fd`);
  const targets = await Promise.all(
    numbers.map((number) => readlink(`${folder}/fd/${number}`).catch(() => 'closed meanwhile')),
  );
  return numbers.map((number, at) => `${number} ${targets[at]}`).join('; ');
}

/**
 * The call and its object, from a line of `/proc/<pid>/syscall`, of a thread that waits without a time limit. A pending
 * timer would set a limit.
 */
function endlessWait(line: string): string | undefined {
  const [number = '', ...values] = line.trim().split(' ');
  const wait = waits.get(number);
  const isEndless = wait !== undefined && wait.none.test(values[wait.argument] ?? '');
  return isEndless ? `${number} ${values[0]}` : undefined;
}

/** Whether a line of `/proc/<pid>/syscall` is a futex call with FUTEX_PRIVATE_FLAG; pthread_join waits without it. */
function isLockWait(line: string): boolean {
  const [number = '', , operation = '0'] = line.trim().split(' ');
  return number === futex && (Number(operation) & futexPrivateFlag) !== 0;
}
