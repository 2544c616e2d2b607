// Messages by which lines of running activations reach the controllers that follow them, over the cluster's state.
import { isJsonObject } from '../json.js';
import type { JsonValue } from '../json.js';

/** Channel of FollowRequest, which every invoker subscribes to. */
export const followChannel = 'followedLogs';

/** Channel of FollowedLines for a controller. */
export const followedLinesChannel = (instance: number): string => `followedLogs controller${instance}`;

/** Interval at which a controller repeats a request, and the time after which an invoker forgets one, ms. */
export const followRenewMs = 1000;
export const followTtlMs = 5000;

/** A stream wants the lines of an activation. */
export interface FollowRequest {
  activationId: string;
  namespace: string;
  /** The channel and the stream that the lines go to. */
  to: string;
  stream: number;
  /** The run whose lines the stream has, and their number; absent before the first lines. */
  run?: string;
  from: number;
}

/** Lines of a run for a stream. */
export interface FollowedLines {
  stream: number;
  /** Differs from run to run of an activation. */
  run: string;
  /** The place of the first line in the run's log. */
  from: number;
  lines: string[];
  /** Number of lines of the whole log; set once the run has ended. */
  total?: number;
}

/** Reads a request; undefined for a value that is none. */
export function readFollowRequest(value: JsonValue): FollowRequest | undefined {
  if (!isJsonObject(value)) return undefined;
  const { activationId, namespace, to, stream, run, from } = value;
  if (typeof activationId !== 'string' || typeof namespace !== 'string' || typeof to !== 'string') return undefined;
  if (typeof stream !== 'number' || typeof from !== 'number') return undefined;
  return { activationId, namespace, to, stream, from, ...(typeof run === 'string' && { run }) };
}

/** Reads a message with lines; undefined for a value that is none. */
export function readFollowedLines(value: JsonValue): FollowedLines | undefined {
  if (!isJsonObject(value)) return undefined;
  const { stream, run, from, lines, total } = value;
  if (typeof stream !== 'number' || typeof run !== 'string' || typeof from !== 'number') return undefined;
  if (!Array.isArray(lines) || !lines.every((line) => typeof line === 'string')) return undefined;
  return { stream, run, from, lines, ...(typeof total === 'number' && { total }) };
}
