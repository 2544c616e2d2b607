// Result and logs of an activation. What functions print is text: nothing of it is ever interpreted.
import { useEffect, useState } from 'preact/hooks';
import { duration, percent } from '../format.js';
import { gpuOf, wasStopped } from '../activation-model.js';
import type { ActivationRecord } from '../activation-model.js';
import { hrefOf } from '../route.js';
import { ask } from '../session.js';
import { download } from './download.js';
import { VirtualList } from './virtual-list.js';
import { Waterfall } from './waterfall.js';

/** Characters of a result that are shown. */
const mostCharacters = 20_000;
/** Lines that are shown as running text; more of them are a list of which only those in sight are in the page. */
const mostLines = 200;
/** Characters of a line of a long log. */
const mostOfLine = 2000;

/** Result of an activation, cut if it is long. */
export function Result({ id, response }: { id: string; response: ActivationRecord['response'] }) {
  const { result } = response;
  if (result === undefined) return <p>The result is not known.</p>;
  const text = JSON.stringify(result, null, 2);
  return (
    <>
      <pre class="text" tabIndex={0} aria-label="Result">
        {text.slice(0, mostCharacters)}
      </pre>
      {text.length > mostCharacters && (
        <p>
          The first {mostCharacters} characters of {text.length} are shown.
        </p>
      )}
      <p>
        <button type="button" onClick={() => download(`${id}.json`, text, 'application/json')}>
          Download the result
        </button>
      </p>
    </>
  );
}

/** Lines of a log. `before`: the number of lines that were printed before the first one of them. */
export function Logs({ id, lines, before = 0 }: { id: string; lines: readonly string[]; before?: number }) {
  if (lines.length === 0) return <p>Nothing was printed.</p>;
  return (
    <>
      {lines.length <= mostLines ? (
        <pre class="text" tabIndex={0} aria-label="Logs">
          {lines.join('\n')}
        </pre>
      ) : (
        <div class="lines">
          <VirtualList
            rows={lines.map((line, at) => ({ line, at }))}
            rowPx={22}
            label="Logs"
            titles={['Line', 'Text']}
            keyOf={({ at }) => String(at)}
            draw={({ line, at }) => (
              <>
                <span role="cell">{before + at + 1}</span>
                <span role="cell" title={line.slice(0, mostOfLine)}>
                  {line.slice(0, mostOfLine)}
                </span>
              </>
            )}
          />
        </div>
      )}
      <p>
        <button type="button" onClick={() => download(`${id}.log`, `${lines.join('\n')}\n`, 'text/plain')}>
          Download the log
        </button>
      </p>
    </>
  );
}

/** Where the time went, what the GPU did, result and logs, below headings of a level. */
export function Outcome({ record, heading: Heading }: { record: ActivationRecord; heading: 'h2' | 'h3' }) {
  return (
    <>
      <Heading>Where the time went</Heading>
      <Waterfall record={record} />
      <GpuFacts record={record} />
      <Heading>Result</Heading>
      <p class={record.response.success ? '' : 'problem'}>{wasStopped(record) ? 'stopped' : record.response.status}</p>
      <Result id={record.activationId} response={record.response} />
      <Heading>Logs</Heading>
      <Logs id={record.activationId} lines={record.logs} />
    </>
  );
}

/** A run alone is told to be long from so many times its usual time on. */
const toldTimesUsual = 1.5;

/** What the platform recorded of the GPU that an activation ran on. */
function GpuFacts({ record }: { record: ActivationRecord }) {
  const gpu = gpuOf(record);
  if (gpu === undefined) return null;
  const { device, share, start, predictedMs, actualMs, degradation, timesUsual = 1, batch = 1, simulated } = gpu;
  return (
    <>
      <Explanation id={record.activationId} />
      <p>
        Ran on <a href={hrefOf('devices', device)}>{device}</a>
        {simulated === true ? ' (simulated)' : ''} with {percent(share)} of the SMs, {start} start
        {batch > 1 ? `, in a batch of ${batch}` : ''}. It took {duration(actualMs)}
        {predictedMs === undefined ? ', nothing was predicted' : `; ${duration(predictedMs)} were predicted`}
        {degradation === undefined ? '' : `; beside others it ran ${percent(degradation)} slower than alone`}
        {timesUsual < toldTimesUsual
          ? ''
          : `; it took ${timesUsual.toFixed(1)} times its usual time for inputs of this size`}
        .
      </p>
    </>
  );
}

/** Where its time went and what would have helped, in the words of `wsk gpu explain`. */
function Explanation({ id }: { id: string }) {
  const [sentence, setSentence] = useState('');
  useEffect(() => {
    let isGone = false;
    ask(`gpu/explanations/${id}`)
      .then((told) => {
        if (!isGone) setSentence((told as { sentence?: string }).sentence ?? '');
      })
      // The facts below are told without it.
      .catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, [id]);
  return sentence === '' ? null : <p class="explanation">{sentence}</p>;
}
