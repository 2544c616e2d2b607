import { useEffect, useMemo, useState } from 'preact/hooks';
import { nameOf, pathOf, statusWord, timesOf } from '../activation-model.js';
import type { Brief } from '../activation-model.js';
import { useActivations } from '../activation-pages.js';
import { now } from '../clock.js';
import { ago, duration } from '../format.js';
import { Problem } from '../parts/problem.js';
import { wholeMsOf } from '../parts/recent-activations.js';
import { VirtualList } from '../parts/virtual-list.js';
import { TimeBar } from '../parts/waterfall.js';
import { hrefOf } from '../route.js';
import { session } from '../session.js';
import { NoNamespace } from './functions.js';

const rowPx = 36;
const hourMs = 3_600_000;
const spans = [
  { name: 'any time', ms: 0 },
  { name: 'the last 15 minutes', ms: hourMs / 4 },
  { name: 'the last hour', ms: hourMs },
  { name: 'the last day', ms: 24 * hourMs },
];
/** A scroll within so many rows of the end asks for more. */
const nearEndRows = 60;
/** So many failures are looked for at once. */
const wantedFailures = 40;

/** The activations of the namespace. `of`: only those of this function; empty: all. */
export function ActivationsPage({ of }: { of: string }) {
  return (
    <>
      <h1>Activations{of === '' ? '' : ` of ${of}`}</h1>
      {session.value?.namespace === '' ? <NoNamespace what="activations" /> : <Activations key={of} of={of} />}
    </>
  );
}

const isFailure = ({ statusCode = 0 }: Brief): boolean => statusCode !== 0;

/** A name that the API's filter takes; others would be refused while they are typed. */
const isName = (name: string): boolean => /^[\w@ .&-]+(\/[\w@ .&-]+)?$/.test(name);

type Failures = 'all' | 'first' | 'only';

function Activations({ of }: { of: string }) {
  const [typed, setTyped] = useState(of);
  const [name, setName] = useState(of);
  const [failures, setFailures] = useState<Failures>('all');
  const [spanMs, setSpanMs] = useState(0);
  const since = useMemo(() => (spanMs === 0 ? '' : `&since=${Math.floor(now() - spanMs)}`), [spanMs]);
  const filter = `${name === '' ? '' : `&name=${pathOf(name)}`}${since}`;
  const isWrong = typed !== '' && !isName(typed);
  return (
    <>
      <form
        class="filter"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isWrong) setName(typed);
        }}
      >
        <label>
          Function{' '}
          <input
            type="search"
            value={typed}
            aria-invalid={isWrong}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
        </label>
        <button type="submit">Show</button>
        <label>
          Errors{' '}
          <select value={failures} onChange={(event) => setFailures(event.currentTarget.value as Failures)}>
            <option value="all">in order</option>
            <option value="first">first</option>
            <option value="only">only</option>
          </select>
        </label>
        <label>
          Since{' '}
          <select value={spanMs} onChange={(event) => setSpanMs(Number(event.currentTarget.value))}>
            {spans.map(({ name: words, ms }) => (
              <option key={ms} value={ms}>
                {words}
              </option>
            ))}
          </select>
        </label>
      </form>
      <ActivationList key={filter} filter={filter} failures={failures} />
    </>
  );
}

function ActivationList({ filter, failures }: { filter: string; failures: Failures }) {
  const { rows, newest, isLoading, isEnd, problem, more } = useActivations(filter);
  const failed = failures === 'all' ? [] : rows.filter(isFailure);
  const shown =
    failures === 'all' ? rows : failures === 'only' ? failed : [...failed, ...rows.filter((one) => !isFailure(one))];
  const longestMs = useMemo(() => rows.reduce((most, one) => Math.max(most, wholeMsOf(one)), 1), [rows]);
  const loadMore = (): void => more((read) => failures !== 'only' || read.filter(isFailure).length >= wantedFailures);
  useEffect(() => {
    // A first look for failures goes back by itself; further ones follow the scroll, or the button.
    if (failures === 'only' && failed.length < wantedFailures) loadMore();
  }, [failures, newest.value === undefined]);
  const onScroll = (event: Event): void => {
    const box = event.target as HTMLElement;
    if (box.scrollTop + box.clientHeight > box.scrollHeight - nearEndRows * rowPx) loadMore();
  };
  const last = rows.at(-1);
  return (
    <>
      <Problem of={newest} what="The activations cannot be shown" />
      {problem !== '' && (
        <p class="problem" role="alert">
          Activations cannot be read: {problem}
        </p>
      )}
      {newest.value !== undefined && shown.length === 0 && <p>None{failures === 'only' ? ' has failed' : ''}.</p>}
      {shown.length > 0 && (
        <div class="activations" onScrollCapture={onScroll}>
          <VirtualList
            rows={shown}
            rowPx={rowPx}
            label="Activations"
            titles={['Began', 'Function', 'Status', 'Took', 'Queue, start, run']}
            keyOf={({ activationId }) => activationId}
            draw={(one) => <ActivationRow one={one} longestMs={longestMs} />}
          />
        </div>
      )}
      <p class="actions">
        <span role="status">
          {shown.length === rows.length ? rows.length : `${shown.length} of ${rows.length}`} activations
          {last === undefined ? '' : `, back to ${new Date(last.start).toLocaleString()}`}
          {isLoading ? ', reading older ones…' : ''}
        </span>
        {!isEnd && (
          <button type="button" disabled={isLoading} onClick={loadMore}>
            Look further back
          </button>
        )}
      </p>
    </>
  );
}

function ActivationRow({ one, longestMs }: { one: Brief; longestMs: number }) {
  return (
    <>
      <span role="cell" title={new Date(one.start).toISOString()}>
        <a href={hrefOf('activations', one.activationId)}>{ago(one.start, now())}</a>
      </span>
      <span role="cell">{nameOf(one)}</span>
      <span role="cell" class={isFailure(one) ? 'late' : ''}>
        {statusWord(one)}
      </span>
      <span role="cell">{duration(wholeMsOf(one))}</span>
      <span role="cell">
        <TimeBar times={timesOf(one)} longestMs={longestMs} />
      </span>
    </>
  );
}
