// Checks of a history of calls of a cluster: entity writes are linearizable, runs at most once, no accepted activation lost.

/** A write or read of one register by one caller. Times are monotonic ms. */
export interface RegisterCall {
  register: string;
  kind: 'write' | 'read';
  /** The value written, or read. */
  value: number;
  beganMs: number;
  /** Infinity if its outcome is unknown: it may take effect at any later time, or never. */
  endedMs: number;
}

/** What callers and functions saw of a cluster. */
export interface History {
  calls: readonly RegisterCall[];
  /** Ids of activations that were accepted. */
  accepted: readonly string[];
  /** Id of the activation of each run, in any order. */
  runs: readonly string[];
  /** Ids of activations that have a record, with whether it says that the code succeeded. */
  records: ReadonlyMap<string, boolean>;
}

/** What is wrong with a history, in words; empty if nothing is. Every register begins with `initial`. */
export function problemsOf({ calls, accepted, runs, records }: History, initial: number): string[] {
  const problems: string[] = [];
  for (const register of new Set(calls.map((call) => call.register))) {
    const own = calls.filter((call) => call.register === register);
    if (!isLinearizable(own, initial)) problems.push(`${own.length} calls of ${register} are not linearizable`);
  }
  const times = new Map<string, number>();
  for (const id of runs) times.set(id, (times.get(id) ?? 0) + 1);
  for (const [id, count] of times) if (count > 1) problems.push(`${id} ran ${count} times`);
  for (const id of accepted) {
    if (!records.has(id)) problems.push(`${id} was accepted and is lost`);
    else if (records.get(id) === true && !times.has(id)) problems.push(`${id} succeeded and did not run`);
  }
  return problems;
}

/**
 * Whether some order of the calls of one register, each at a moment between its begin and its end, explains all that was read.
 * Depth-first search with the states seen, after Wing and Gong (1993) and Lowe (2017).
 */
export function isLinearizable(calls: readonly RegisterCall[], initial: number): boolean {
  const seenValues = new Set(
    calls.flatMap(({ kind, value, endedMs }) => (kind === 'read' && endedMs < Infinity ? [value] : [])),
  );
  // What has an unknown outcome says nothing, unless it is a write that was seen.
  const known = calls.filter(
    ({ kind, value, endedMs }) => endedMs < Infinity || (kind === 'write' && seenValues.has(value)),
  );
  const ordered = known.sort((one, other) => one.beganMs - other.beganMs);
  const seen = new Set<string>();
  const search = (done: ReadonlySet<number>, value: number): boolean => {
    const open = ordered.flatMap((call, at) => (done.has(at) ? [] : [{ call, at }]));
    const deadlineMs = Math.min(...open.map(({ call }) => call.endedMs));
    if (deadlineMs === Infinity) return true;
    const next = open.filter(({ call }) => call.beganMs <= deadlineMs);
    // A read that is true now changes nothing: it need not wait.
    const reads = next.filter(({ call }) => call.kind === 'read' && call.value === value);
    if (reads.length > 0) return search(new Set([...done, ...reads.map(({ at }) => at)]), value);
    // Calls that are done began before this deadline, so that the open ones before it tell which are.
    const state = `${value} ${next.map(({ at }) => at).join()}`;
    if (seen.has(state)) return false;
    seen.add(state);
    const writes = next.filter(({ call }) => call.kind === 'write');
    return writes.some(({ call, at }) => search(new Set([...done, at]), call.value));
  };
  return search(new Set(), initial);
}

/**
 * The runs of one training job by their signs of life, in the order in which they began. Throws Error if one gave a sign of
 * life after a later one had begun.
 */
export function runsOneAfterTheOther(beats: readonly string[]): string[] {
  const runs: string[] = [];
  for (const run of beats) {
    if (run === runs.at(-1)) continue;
    if (runs.includes(run)) throw new Error(`run ${run} went on beside run ${runs.at(-1)}`);
    runs.push(run);
  }
  return runs;
}
