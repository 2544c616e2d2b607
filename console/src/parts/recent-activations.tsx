import { statusWord, timesOf } from '../activation-model.js';
import type { Brief } from '../activation-model.js';
import { now } from '../clock.js';
import { ago, duration } from '../format.js';
import { hrefOf } from '../route.js';
import { TimeBar } from './waterfall.js';

/** The time of an activation from its acceptance, ms. */
export function wholeMsOf(brief: Brief): number {
  const { waitMs, startMs, runMs } = timesOf(brief);
  return waitMs + startMs + runMs;
}

/** The last activations of a function. */
export function RecentActivations({ name, activations }: { name: string; activations: Brief[] | undefined }) {
  const newest = [...(activations ?? [])].sort((one, other) => other.start - one.start);
  if (newest.length === 0) return activations === undefined ? null : <p>None yet.</p>;
  const longestMs = Math.max(...newest.map(wholeMsOf));
  return (
    <>
      <div class="scrolled" role="region" aria-label="Last activations" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Activation</th>
              <th scope="col">Began</th>
              <th scope="col">Status</th>
              <th scope="col">Version</th>
              <th scope="col">Took</th>
              <th scope="col">Queue, start, run</th>
            </tr>
          </thead>
          <tbody>
            {newest.map((one) => (
              <tr key={one.activationId}>
                <td>
                  <a href={hrefOf('activations', one.activationId)}>{one.activationId.slice(0, 8)}</a>
                </td>
                <td>{ago(one.start, now())}</td>
                <td class={one.statusCode === 0 ? '' : 'problem'}>{statusWord(one)}</td>
                <td>{one.version}</td>
                <td>{duration(wholeMsOf(one))}</td>
                <td>
                  <TimeBar times={timesOf(one)} longestMs={longestMs} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p>
        <a href={hrefOf('activations', 'of', name)}>All activations of {name}</a>
      </p>
    </>
  );
}
