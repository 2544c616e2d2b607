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
export function installKafka(): string | undefined;
export function startKafka(options: {
  dir: string;
  /** Where clients reach it, an address of this machine; default 127.0.0.1. */
  host?: string;
  port?: number;
  heapMiB?: number;
  /** Its protocol, default PLAINTEXT, and settings that this needs. */
  listener?: { protocol: string; lines: string[] };
}): Promise<RunningKafka>;
