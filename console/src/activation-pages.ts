// The activations of a namespace: the newest by the stream of events, older ones page by page.
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLive } from './hooks.js';
import { KeptActivations, fillGap, placeAfter } from './kept-activations.js';
import type { Place } from './kept-activations.js';
import type { Known } from './live.js';
import { ask } from './session.js';
import type { Brief } from './activation-model.js';

const pageSize = 200;
/** Activations that are kept in the page, at most. */
const mostKept = 100_000;
/** Pages that one wish for more reads at most while none has what is looked for. */
const mostPages = 25;
const againMs = 2000;

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
  const kept = useRef<KeptActivations | undefined>(undefined);
  kept.current ??= new KeptActivations(mostKept);
  const all = kept.current;
  const [state, setState] = useState({ isLoading: false, isEnd: false, problem: '' });
  const isGone = useRef(false);
  useEffect(() => () => void (isGone.current = true), []);
  const read = async ({ upto, skip }: Place): Promise<Brief[]> =>
    (await ask(`${base}&upto=${upto}&skip=${skip}`)) as Brief[];
  const filling = useRef(Promise.resolve());
  /** Reads a page, again until the API answers it; the page is empty once the component is gone. */
  const readForGap = async (place: Place): Promise<Brief[]> => {
    while (!isGone.current) {
      try {
        const page = await read(place);
        setState((before) => ({ ...before, problem: '' }));
        return page;
      } catch (error) {
        setState((before) => ({ ...before, problem: error instanceof Error ? error.message : String(error) }));
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    }
    return [];
  };
  const taken = useRef<readonly Brief[] | undefined>(undefined);
  if (newest.value !== undefined && newest.value !== taken.current) {
    const page = newest.value;
    taken.current = page;
    const isFirst = all.rows.length === 0;
    const isApart = all.add(page).length === page.length;
    // More than a page began since the last one, or the stream was away.
    if (isApart && !isFirst && page.length === pageSize) {
      filling.current = filling.current
        .then(() => fillGap(all, page, mostKept, readForGap))
        // Draws what the last page has added.
        .then(() => setState((before) => ({ ...before })));
    }
  }
  const { rows } = all;
  const readPages = async (isEnough: (read: readonly Brief[]) => boolean): Promise<boolean> => {
    const found: Brief[] = [];
    let place: Place = { upto: rows.at(-1)?.start ?? 0, skip: 0 };
    for (let pages = 0; pages < mostPages && !isGone.current; pages++) {
      const page = await read(place);
      all.add(page);
      found.push(...page);
      if (page.length < pageSize || all.rows.length >= mostKept) return true;
      place = placeAfter(page, place);
      if (isEnough(found)) return false;
    }
    return false;
  };
  const more = (isEnough: (read: readonly Brief[]) => boolean): void => {
    if (state.isLoading || state.isEnd || rows.length < pageSize) return;
    setState({ ...state, isLoading: true, problem: '' });
    readPages(isEnough).then(
      (isEnd) => setState({ isLoading: false, isEnd, problem: '' }),
      (error: unknown) => {
        const problem = error instanceof Error ? error.message : String(error);
        setState({ isLoading: false, isEnd: false, problem });
      },
    );
  };
  const { isLoading, isEnd, problem } = state;
  return { rows, newest, isLoading, isEnd: isEnd || rows.length < pageSize, problem, more };
}
