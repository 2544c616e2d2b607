/** A broker that runs. */
export interface RunningKafka {
  /** As a client wants it: `host:port`. */
  brokers: string;
  port: number;
  pid: number;
  /** Has it end in order. */
  stop(): Promise<void>;
  /** Ends it at once, with SIGKILL. */
  kill(): Promise<void>;
}

/** Where the broker's packages lie, once they are installed. */
export const libraryFolder: string;
export function hasKafka(): boolean;
export function installKafka(): Promise<string | undefined>;
export function startKafka(options: {
  dir: string;
  /** Where clients reach it, an address of this machine; default 127.0.0.1. */
  host?: string;
  port?: number;
  heapMiB?: number;
  /** Its protocol, default PLAINTEXT, and settings that this needs. */
  listener?: { protocol: string; lines: string[] };
  /** Variables of its own. */
  env?: Record<string, string>;
}): Promise<RunningKafka>;

/** Brokers that are one Kafka. */
export interface RunningKafkas {
  /** All of them, as a client wants it. */
  brokers: string;
  /** The broker with `node.id` i + 1 at i. */
  nodes: RunningKafka[];
  /** Starts those again that have ended. */
  restart(...nodes: number[]): Promise<void>;
}
export function startKafkas(options: {
  dir: string;
  count: number;
  /** Of each. */
  heapMiB?: number;
  /** Variables of broker number `node`, from 0 on. */
  env?: (node: number) => Record<string, string>;
}): Promise<RunningKafkas>;
