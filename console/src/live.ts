// What the console shows, kept up to date by one stream of events.
import { signal, type ReadonlySignal, type Signal } from '@preact/signals';
import { apiUrl, checkPath } from './api-path.js';
import { noteTime } from './clock.js';
import { changedList, eventReader } from './events.js';
import { authorization, credentials, session, signOut } from './session.js';

/** What is known of a path: its answer, or why there is none. Both absent: nothing has come yet. */
export interface Known<Value> {
  value?: Value;
  problem?: { status: number; error: string };
}

/** Whether the stream is up; idle: the page follows nothing. */
export const link = signal<'idle' | 'connecting' | 'live' | 'lost'>('idle');

const known = new Map<string, { count: number; shown: Signal<Known<unknown>> }>();
let stopping: AbortController | undefined;
let isPlanned = false;
let waitMs = 500;
const longestWaitMs = 5000;
/** A stream that says nothing for so long is taken for broken, ms; the controller gives a sign of life each 5 s. */
const silentMs = 15_000;

/** Begins to follow a path below /api/v1; the function that is returned ends it. A refused path has problem 404. */
export function follow(path: string): { shown: ReadonlySignal<Known<unknown>>; end: () => void } {
  try {
    checkPath(path);
  } catch (error) {
    const problem = { status: 404, error: error instanceof Error ? error.message : String(error) };
    return { shown: signal<Known<unknown>>({ problem }), end: () => undefined };
  }
  const entry = known.get(path) ?? { count: 0, shown: signal<Known<unknown>>({}) };
  known.set(path, entry);
  entry.count += 1;
  if (entry.count === 1) plan();
  return {
    shown: entry.shown,
    end() {
      entry.count -= 1;
      if (entry.count > 0) return;
      known.delete(path);
      plan();
    },
  };
}

/** Opens the stream with the paths that are followed now, once they have been told. */
function plan(): void {
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => {
    isPlanned = false;
    stopping?.abort();
    stopping = undefined;
    const isWanted = known.size > 0 && session.value !== undefined;
    if (!isWanted) link.value = 'idle';
    else if (link.value === 'idle') link.value = 'connecting';
    if (isWanted) void run();
  });
}

async function run(): Promise<void> {
  const own = new AbortController();
  stopping = own;
  while (!own.signal.aborted) {
    const problem = await read(own.signal);
    if (own.signal.aborted) return;
    if (problem === 401) return signOut('The key is no longer valid.');
    link.value = 'lost';
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    waitMs = Math.min(longestWaitMs, waitMs * 2);
  }
}

/** Reads a stream to its end. Returns the status of a refusal. */
async function read(signal: AbortSignal): Promise<number | undefined> {
  const query = new URLSearchParams([...known.keys()].map((path) => ['of', path]));
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), silentMs);
  try {
    const answer = await fetch(apiUrl(`live?${query}`), {
      headers: { Authorization: authorization() },
      credentials,
      signal: AbortSignal.any([signal, silent.signal]),
    });
    if (!answer.ok || answer.body === null) return answer.status;
    link.value = 'live';
    waitMs = 500;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const eventsIn = eventReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silentMs);
      for (const { event, data } of eventsIn(value)) {
        const ended = take(event, data as Told);
        if (ended !== undefined) return ended;
      }
    }
  } catch {
    // Aborted, or the controller is gone: the caller tries again unless the page wants another stream.
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

interface Told {
  of: string;
  at?: number;
  value?: unknown;
  set?: Readonly<Record<string, unknown>>[];
  gone?: string[];
  status?: number;
  error?: string;
}

/** Takes an event over. Returns the status with which the stream ends. */
function take(event: string, { of, at, value, set = [], gone = [], status = 0, error = '' }: Told): number | undefined {
  if (at !== undefined) noteTime(at);
  if (event === 'end') return status;
  const shown = known.get(of)?.shown;
  if (shown === undefined) return undefined;
  if (event === 'value') shown.value = { value };
  else if (event === 'problem') shown.value = { problem: { status, error } };
  else if (event === 'changes' && Array.isArray(shown.value.value)) {
    shown.value = { value: changedList(shown.value.value as Readonly<Record<string, unknown>>[], set, gone) };
  }
  return undefined;
}
