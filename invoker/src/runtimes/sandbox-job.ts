import type { Bind } from './runtime-catalog.js';

/** A program that the platform runs for functions, and that fills a folder of the host. */
export interface SandboxJob {
  /** Program and arguments, as paths inside the sandbox. */
  command: readonly string[];
  /** What it reads, besides the sandbox's base view of the system. */
  binds: readonly Bind[];
  env: Readonly<Record<string, string>>;
  /** What it fills, an existing folder of the host; a path inside that is called `target`. */
  folder: string;
  target: string;
  /** What may be in the folder at a time: bytes, and files with folders. */
  maxBytes: number;
  maxFiles: number;
  memoryMiB: number;
  timeoutMs: number;
}

/** The job was ended: it filled more than it may, or took too long. `message` says which. */
export class JobLimitError extends Error {
  override name = 'JobLimitError';
}

/** Runs a job to its end. Rejects with ProgramError if it fails or cannot be started, and with JobLimitError. */
export type RunJob = (job: SandboxJob) => Promise<void>;
