import { useEffect, useState } from 'preact/hooks';
import type { GpuQueued, Rejection } from '@gpuwhisk/common/gpu';
import { annotationOf, gpuOf, nameOf } from '../activation-model.js';
import type { ActivationRecord, Brief, Decision } from '../activation-model.js';
import { activationPath, isActivationId } from '../api-path.js';
import { now } from '../clock.js';
import { ago, duration, memory, percent } from '../format.js';
import { useLive } from '../hooks.js';
import { useLogs } from '../parts/follow-logs.js';
import { Logs, Outcome } from '../parts/outcome.js';
import { Problem } from '../parts/problem.js';
import { hrefOf } from '../route.js';
import { ApiProblem, ask } from '../session.js';

const againMs = 1000;

/** One activation: while it runs its place in the queue and its logs, afterwards its record; and what placed it. */
export function ActivationPage({ id }: { id: string }) {
  if (isActivationId(id)) return <Activation id={id} />;
  return (
    <>
      <h1>Activation</h1>
      <p class="problem" role="alert">
        The activation cannot be shown: its id must be of 32 hexadecimal digits.
      </p>
    </>
  );
}

function Activation({ id }: { id: string }) {
  const { record, problem } = useRecord(id);
  return (
    <>
      <h1>Activation {id.slice(0, 8)}</h1>
      <p>
        <code>{id}</code>
      </p>
      {problem !== '' && (
        <p class="problem" role="alert">
          The activation cannot be shown: {problem}
        </p>
      )}
      {record === undefined ? problem === '' && <Running id={id} /> : <Recorded record={record} />}
    </>
  );
}

/** The record of an activation, asked for until it is there. */
function useRecord(id: string): { record: ActivationRecord | undefined; problem: string } {
  const [found, setFound] = useState<{ record: ActivationRecord | undefined; problem: string }>({
    record: undefined,
    problem: '',
  });
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      while (!isGone) {
        try {
          const record = (await ask(activationPath(id))) as ActivationRecord;
          if (!isGone) setFound({ record, problem: '' });
          return;
        } catch (error) {
          // No record yet, or no controller: both may change. Anything else stays as it is.
          if (!isGone && error instanceof ApiProblem && error.status < 500 && error.status !== 404) {
            setFound({ record: undefined, problem: error.message });
            return;
          }
        }
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    };
    setFound({ record: undefined, problem: '' });
    void read();
    return () => {
      isGone = true;
    };
  }, [id]);
  return found;
}

function Running({ id }: { id: string }) {
  const queue = useLive<GpuQueued[]>(`gpu/queue?activation=${id}`);
  const { lines, before } = useLogs(id);
  const [waiting] = queue.value ?? [];
  return (
    <>
      <p role="status">There is no record yet. Either the activation runs, or there is none of this id.</p>
      {waiting !== undefined && (
        <>
          <h2>Waits for a GPU</h2>
          <p>
            It is number {waiting.position} in the queue and has waited {duration(waiting.waitedMs)}.{' '}
            {waiting.refusals.join(' ')}
          </p>
          <Alternatives rejected={waiting.rejected} />
        </>
      )}
      {lines.length > 0 && (
        <>
          <h2>Logs until now</h2>
          <Logs id={id} lines={lines} before={before} />
        </>
      )}
      <Decisions id={id} />
    </>
  );
}

function Recorded({ record }: { record: ActivationRecord }) {
  const name = nameOf(record);
  const isSequence = annotationOf(record, 'kind') === 'sequence';
  const needsGpu = gpuOf(record) !== undefined;
  return (
    <>
      <p>
        <a href={hrefOf('functions', name)}>{name}</a>, version {record.version}, began{' '}
        <span title={new Date(record.start).toISOString()}>{ago(record.start, now())}</span>
        {record.cause === undefined ? null : (
          <>
            , as a part of <a href={hrefOf('activations', record.cause)}>{record.cause}</a>
          </>
        )}
        .
      </p>
      {isSequence && <Components ids={record.logs} />}
      <Outcome record={isSequence ? { ...record, logs: [] } : record} heading="h2" />
      {needsGpu && <Decisions id={record.activationId} />}
    </>
  );
}

/** The activations of a sequence's actions, in their order. */
function Components({ ids }: { ids: readonly string[] }) {
  const [parts, setParts] = useState<ReadonlyMap<string, Brief>>(new Map());
  const all = ids.join();
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      for (const id of all.split(',').filter((one) => one !== '')) {
        const part = (await ask(activationPath(id))) as Brief;
        if (isGone) return;
        setParts((before) => new Map([...before, [id, part]]));
      }
    };
    // A part whose record is not there is shown by its id alone.
    read().catch(() => undefined);
    return () => {
      isGone = true;
    };
  }, [all]);
  return (
    <>
      <h2>Its actions</h2>
      <ol>
        {ids.map((id) => {
          const part = parts.get(id);
          return (
            <li key={id}>
              <a href={hrefOf('activations', id)}>{part === undefined ? id : nameOf(part)}</a>
              {part === undefined ? '' : `, ${duration(part.duration ?? 0)}`}
            </li>
          );
        })}
      </ol>
    </>
  );
}

/** What the scheduler decided about an activation, the newest decision first, with the alternatives. */
function Decisions({ id }: { id: string }) {
  const decisions = useLive<Decision[]>(`gpu/decisions?activation=${id}`);
  const all = decisions.value ?? [];
  return (
    <>
      <h2>Decision</h2>
      <Problem of={decisions} what="It cannot be shown" />
      {decisions.value !== undefined && all.length === 0 && (
        <p>None is kept: there was none yet, or more than 1000 others came since.</p>
      )}
      {all.map((one) => (
        <section key={one.at} aria-label={`Decision of ${new Date(one.at).toISOString()}`}>
          <p>
            {placementWords(one)} Policy {one.policy}: {one.reason}
          </p>
          <Alternatives rejected={one.rejected} />
        </section>
      ))}
    </>
  );
}

function placementWords({ placement }: Decision): string {
  if (placement === undefined) return 'Not placed.';
  const { devices, slice, share, predicted, invoker } = placement;
  const where = slice === undefined ? devices.join(', ') : `slice ${slice} of ${devices.join(', ')}`;
  const expected = predicted === undefined ? '' : `, expected to run ${duration(predicted.runMs)}`;
  return `Placed on ${where} of ${invoker} with ${percent(share.smRequest)} to ${percent(share.smLimit)} of the SMs and ${memory(share.memoryMiB)}${expected}.`;
}

/** What was not chosen, and why. */
function Alternatives({ rejected }: { rejected: readonly Rejection[] }) {
  if (rejected.length === 0) return <p>There was no alternative.</p>;
  return (
    <div class="scrolled" role="region" aria-label="Alternatives" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Not chosen</th>
            <th scope="col">Why</th>
            <th scope="col">Numbers</th>
          </tr>
        </thead>
        <tbody>
          {rejected.map(({ what, reason, numbers }, at) => (
            <tr key={`${what} ${at}`}>
              <td>{what}</td>
              <td>{reason}</td>
              <td>
                {Object.entries(numbers)
                  .map(([name, value]) => `${name} ${Number(value.toPrecision(4))}`)
                  .join(', ')}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
