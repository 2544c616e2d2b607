// The activations of a namespace: the newest by the stream of events, older ones page by page.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useLive } from './hooks.js';
import type { Known } from './live.js';
import { ask } from './session.js';
import type { Brief } from './activation-model.js';

const pageSize = 200;
/** Activations that are kept in the page, at most. */
const mostKept = 100_000;
/** Pages that one wish for more reads at most while none has what is looked for. */
const mostPages = 25;

/** What is shown of the activations, and how to see more. */
export interface Activations {
  /** The newest first. */
  rows: readonly Brief[];
  newest: Known<Brief[]>;
  isLoading: boolean;
  /** Whether there are no older ones, or no more are kept. */
  isEnd: boolean;
  problem: string;
  /** Reads older ones until `isEnough` of those that were read by this call, or the end. */
  more: (isEnough: (read: readonly Brief[]) => boolean) => void;
}

/** The activations that `filter`, a query of the API, selects; it is the same for the life of the component. */
export function useActivations(filter: string): Activations {
  const base = `namespaces/_/activations?limit=${pageSize}${filter}`;
  const newest = useLive<Brief[]>(base);
  const kept = useRef(new Map<string, Brief>()).current;
  const [state, setState] = useState({ count: 0, isLoading: false, isEnd: false, problem: '' });
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  for (const one of newest.value ?? []) kept.set(one.activationId, one);
  const rows = useMemo(
    () => [...kept.values()].sort((one, other) => other.start - one.start),
    [newest.value, state.count],
  );
  const readPages = async (isEnough: (read: readonly Brief[]) => boolean): Promise<boolean> => {
    const read: Brief[] = [];
    let [upto, skip] = [rows.at(-1)?.start ?? 0, 0];
    for (let pages = 0; pages < mostPages && !isGone.current; pages++) {
      const page = (await ask(`${base}&upto=${upto}&skip=${skip}`)) as Brief[];
      for (const one of page) kept.set(one.activationId, one);
      read.push(...page);
      if (page.length < pageSize || kept.size >= mostKept) return true;
      // More may have begun in the millisecond of the last one than a page holds.
      const oldest = Math.min(...page.map(({ start }) => start));
      [upto, skip] = oldest === upto ? [upto, skip + pageSize] : [oldest, 0];
      if (isEnough(read)) return false;
    }
    return false;
  };
  const more = (isEnough: (read: readonly Brief[]) => boolean): void => {
    if (state.isLoading || state.isEnd || rows.length < pageSize) return;
    setState({ ...state, isLoading: true, problem: '' });
    readPages(isEnough).then(
      (isEnd) => setState({ count: kept.size, isLoading: false, isEnd, problem: '' }),
      (error: unknown) => {
        const problem = error instanceof Error ? error.message : String(error);
        setState({ count: kept.size, isLoading: false, isEnd: false, problem });
      },
    );
  };
  const { isLoading, isEnd, problem } = state;
  return { rows, newest, isLoading, isEnd: isEnd || rows.length < pageSize, problem, more };
}
