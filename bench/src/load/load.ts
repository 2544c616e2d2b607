/** One stretch of load: every connection sends its next request when the answer to the last has come. */
export interface LoadRequest {
  baseUrl: string;
  /** Default: POST. */
  method?: string;
  /** Paths of the requests; with several, each request picks one uniformly at random. */
  paths: readonly string[];
  headers: Readonly<Record<string, string>>;
  body: string;
  connections: number;
  seconds: number;
  /** Seed for the choice of paths. */
  seed: number;
  /** Count answers by status. Counting slows the client down, so loads whose throughput is compared do not count. */
  countStatuses?: boolean;
  /** File that takes the bodies of 2xx answers, one a line; implies countStatuses. */
  bodiesFile?: string;
}

/** Result of a load. Latencies run from request sent to answer read. */
export interface LoadResult {
  requests: number;
  requestsPerS: number;
  p50Ms: number;
  p95Ms: number;
  p99Ms: number;
  maxMs: number;
  /** Answers with a status above 399. */
  failedStatuses: number;
  /** Failures to connect, read or write, and requests that took longer than timeoutS. */
  socketErrors: number;
  /** Answers by status, if they were counted. */
  statuses: ReadonlyMap<number, number>;
}

/** A client that generates load. */
export interface LoadGenerator {
  /** Its name and version. */
  name: string;
  run(request: LoadRequest): Promise<LoadResult>;
}

/** How long a request may take before it counts as an error, s. */
export const timeoutS = 60;

/** Number of requests that did not end with `expected`; without counted statuses, of statuses above 399. */
export function errorsOf(result: LoadResult, expected: number): number {
  if (result.statuses.size === 0) return result.failedStatuses + result.socketErrors;
  let others = 0;
  for (const [status, count] of result.statuses) if (status !== expected) others += count;
  return others + result.socketErrors;
}
