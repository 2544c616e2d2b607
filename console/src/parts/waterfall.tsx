import { duration } from '../format.js';
import { coldStartOf, gpuOf, timesOf } from '../activation-model.js';
import type { Brief, Times } from '../activation-model.js';

/** The steps of an activation in their order. */
function stepsOf({ waitMs, startMs, runMs }: Times) {
  return [
    { name: 'Queue', step: 'queue', ms: waitMs },
    { name: 'Start', step: 'start', ms: startMs },
    { name: 'Run', step: 'run', ms: runMs },
  ];
}

/** An activation's times in words. */
function tellTimes(times: Times): string {
  return stepsOf(times)
    .map(({ name, ms }) => `${name} ${duration(ms)}`)
    .join(', ');
}

/** Where the time went, in proportion: one bar. `longestMs` fills its width. */
export function TimeBar({ times, longestMs }: { times: Times; longestMs: number }) {
  const words = tellTimes(times);
  return (
    <div class="times" role="img" aria-label={words} title={words}>
      {stepsOf(times).map(({ step, ms }) => (
        <div key={step} class={`step ${step}`} style={{ width: `${(100 * ms) / Math.max(1, longestMs)}%` }} />
      ))}
    </div>
  );
}

/** Queue, start and run below each other, in proportion, and what is known of their parts. */
export function Waterfall({ record }: { record: Pick<Brief, 'annotations' | 'duration'> }) {
  const times = timesOf(record);
  const wholeMs = times.waitMs + times.startMs + times.runMs;
  const cold = coldStartOf(record);
  const gpu = gpuOf(record);
  const parts = Object.entries({
    'queue until placement': cold?.queueMs ?? gpu?.queueMs,
    'container made': cold?.allocMs,
    'runtime started': cold?.runtimeMs,
    'injected into a warm process': cold?.injectMs ?? gpu?.injectMs,
    'modules loaded': cold?.importMs,
    'code loaded': cold?.codeMs,
  }).filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  let beforeMs = 0;
  return (
    <>
      <table class="waterfall">
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Time</th>
            <th scope="col">Of {duration(wholeMs)}</th>
          </tr>
        </thead>
        <tbody>
          {stepsOf(times).map(({ name, step, ms }) => {
            const left = (100 * beforeMs) / Math.max(1, wholeMs);
            beforeMs += ms;
            return (
              <tr key={step}>
                <th scope="row">{name}</th>
                <td>{duration(ms)}</td>
                <td class="track">
                  <div
                    class={`step ${step}`}
                    style={{ marginLeft: `${left}%`, width: `${(100 * ms) / Math.max(1, wholeMs)}%` }}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {parts.length > 0 && (
        <p>Parts of queue and start: {parts.map(([name, ms]) => `${name} ${duration(ms)}`).join(', ')}.</p>
      )}
    </>
  );
}
