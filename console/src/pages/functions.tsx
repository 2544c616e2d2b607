import { useEffect, useRef, useState } from 'preact/hooks';
import { annotationOf, nameOf } from '../activation-model.js';
import type { Action } from '../activation-model.js';
import { now } from '../clock.js';
import { ago, memory } from '../format.js';
import { useLive } from '../hooks.js';
import { Problem } from '../parts/problem.js';
import { VirtualList } from '../parts/virtual-list.js';
import { hrefOf } from '../route.js';
import { ask, session } from '../session.js';

const rowPx = 36;
const pageSize = 200;
/** Functions that the list shows, at most. */
const mostActions = 20_000;

/** The functions of the namespace, last written first. */
export function FunctionsPage() {
  return (
    <>
      <h1>Functions</h1>
      {session.value?.namespace === '' ? <NoNamespace what="functions" /> : <Functions />}
    </>
  );
}

/** Told to those whose key has no namespace. */
export function NoNamespace({ what }: { what: string }) {
  return <p>The operator's key has no {what} of its own. Sign in with the key of a namespace.</p>;
}

function Functions() {
  const newest = useLive<Action[]>(`namespaces/_/actions?limit=${pageSize}`);
  const older = useOlder(newest.value);
  const [words, setWords] = useState('');
  const [onlyGpu, setOnlyGpu] = useState(false);
  // An action may be in both lists; that of the stream is newer.
  const known = new Map([...older.actions, ...(newest.value ?? [])].map((action) => [nameOf(action), action]));
  const all = Array.from(known, ([name, action]) => ({ name, action })).sort(
    (one, other) => other.action.updated - one.action.updated,
  );
  const wanted = words.trim().toLowerCase();
  const shown = all.filter(
    ({ name, action }) =>
      name.toLowerCase().includes(wanted) && (!onlyGpu || annotationOf(action, 'gpu') !== undefined),
  );
  return (
    <>
      <Problem of={newest} what="The functions cannot be shown" />
      {older.problem !== '' && (
        <p class="problem" role="alert">
          Older functions cannot be read: {older.problem}{' '}
          <button type="button" onClick={older.retry}>
            Try again
          </button>
        </p>
      )}
      <form class="filter" role="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          Name contains <input type="search" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
        </label>
        <label>
          <input type="checkbox" checked={onlyGpu} onChange={(event) => setOnlyGpu(event.currentTarget.checked)} /> With
          a GPU only
        </label>
        <output>{tellCount(shown.length, all.length)}</output>
        <a href={hrefOf('new-function')}>New function</a>
      </form>
      {newest.value?.length === 0 && (
        <p>
          There is no function yet. <a href={hrefOf('new-function')}>Write one here</a>, or send one by{' '}
          <code>wsk action create hello hello.js</code>.
        </p>
      )}
      {all.length > 0 && (
        <div class="functions">
          <VirtualList
            rows={shown}
            rowPx={rowPx}
            label="Functions"
            titles={['Function', 'Kind', 'Version', 'Changed', 'GPU']}
            keyOf={({ name }) => name}
            draw={({ name, action }) => <FunctionRow name={name} action={action} />}
          />
        </div>
      )}
    </>
  );
}

const tellCount = (shown: number, all: number): string => (shown === all ? `${all}` : `${shown} of ${all}`);

/** The actions behind the first page, which the stream keeps up to date. */
interface Older {
  actions: readonly Action[];
  /** Why they could not be read; empty if they were. */
  problem: string;
  retry: () => void;
}

/** The actions behind the first page, read again when an action leaves that page. */
function useOlder(newest: readonly Action[] | undefined): Older {
  const [actions, setActions] = useState<readonly Action[]>([]);
  const [problem, setProblem] = useState('');
  const before = useRef<readonly Action[]>([]);
  /** The read of the pages: `isStale` demands another one, `left` are the actions that left the first page meanwhile. */
  const reading = useRef({ isOn: false, isStale: false, isGone: false, left: [] as Action[] }).current;
  useEffect(() => () => void (reading.isGone = true), []);
  const readAll = async (): Promise<void> => {
    const found: Action[] = [];
    reading.left = [];
    for (let skip = pageSize; skip < mostActions && !reading.isGone; skip += pageSize) {
      const page = (await ask(`namespaces/_/actions?limit=${pageSize}&skip=${skip}`)) as Action[];
      found.push(...page);
      // Actions of earlier reads stay until all pages are there.
      setActions((known) => (known.length > found.length ? known : [...reading.left, ...found]));
      if (page.length < pageSize) break;
    }
    setActions([...reading.left, ...found]);
  };
  const refresh = async (): Promise<void> => {
    reading.isStale = true;
    if (reading.isOn) return;
    reading.isOn = true;
    try {
      while (reading.isStale && !reading.isGone) {
        reading.isStale = false;
        await readAll();
      }
      setProblem('');
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    } finally {
      reading.isOn = false;
    }
  };
  useEffect(() => {
    if (newest === undefined) return;
    const names = new Set(newest.map(nameOf));
    const left = before.current.filter((action) => !names.has(nameOf(action)));
    const isFirst = before.current.length < pageSize;
    before.current = newest;
    if (newest.length < pageSize) setActions([]);
    else if (isFirst || left.length > 0) {
      // An action that left the page was deleted or is behind it, which the pages tell.
      reading.left.push(...left);
      setActions((known) => [...left, ...known]);
      void refresh();
    }
  }, [newest]);
  return { actions, problem, retry: () => void refresh() };
}

function FunctionRow({ name, action }: { name: string; action: Action }) {
  const gpu = annotationOf(action, 'gpu') as { memoryMiB?: number; gpus?: number } | undefined;
  return (
    <>
      <span role="cell">
        <a href={hrefOf('functions', name)}>{name}</a>
      </span>
      <span role="cell">{String(annotationOf(action, 'exec') ?? '')}</span>
      <span role="cell">{action.version}</span>
      <span role="cell" title={new Date(action.updated).toISOString()}>
        {ago(action.updated, now())}
      </span>
      <span role="cell">{gpu?.memoryMiB === undefined ? '' : memory(gpu.memoryMiB)}</span>
    </>
  );
}
