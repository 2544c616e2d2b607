import { useEffect, useState } from 'preact/hooks';
import { now } from '../clock.js';
import { ago, duration, memory, percent, shortName } from '../format.js';
import { useLive } from '../hooks.js';
import { Logs } from '../parts/outcome.js';
import { Problem } from '../parts/problem.js';
import { VirtualList } from '../parts/virtual-list.js';
import { hrefOf } from '../route.js';
import { ask, session } from '../session.js';

const rowPx = 36;

/** A training job. Times epoch ms, lengths of time ms. */
interface Job {
  id: string;
  namespace: string;
  action: string;
  state: string;
  reason?: string;
  gpus: number;
  members: number;
  createdAt: number;
  endedAt?: number;
  retryAt?: number;
  timeLimitMs?: number;
  restarts?: number;
  maxRestarts?: number;
  interruptions?: number;
  devices?: string[];
  steps?: number;
  /** Steps per second. */
  rate?: number;
  stalled?: boolean;
  joined?: number;
  checkpointUsedMiB?: number;
  attempts: {
    number: number;
    activationId: string;
    startedAt?: number;
    endedAt?: number;
    reason?: string;
    steps?: number;
  }[];
}

/** A process on a GPU that is no function. Fractions 0 to 1. */
interface WorkloadRow {
  id: string;
  name: string;
  origin: string;
  invoker: string;
  device: string;
  since?: number;
  memoryMiB?: number;
  maxDegradation: number;
  rate?: number;
  baselineRate?: number;
  degradation?: number;
  estimatedDegradation?: number;
  state?: string;
  /** Whether its node attests its process; absent: an operator has registered it. */
  attested?: boolean;
}

const isOver = ({ state }: Job): boolean => ['succeeded', 'failed', 'stopped'].includes(state);

/** Training jobs, and the workloads on GPUs that are no functions. */
export function JobsPage() {
  const jobs = useLive<Job[]>('gpu/jobs');
  const workloads = useLive<WorkloadRow[]>('gpu/workloads');
  const newest = [...(jobs.value ?? [])].sort((one, other) => other.createdAt - one.createdAt);
  return (
    <>
      <h1>Workloads and jobs</h1>
      <h2>Training jobs</h2>
      <Problem of={jobs} what="The jobs cannot be shown" />
      {jobs.value?.length === 0 && (
        <p>
          There are none. <code>wsk gpu job run ACTION</code> runs a function as a training job.
        </p>
      )}
      {newest.length > 0 && (
        <div class="jobs">
          <VirtualList
            rows={newest}
            rowPx={rowPx}
            label="Training jobs"
            titles={['Function', 'State', 'Progress', 'GPUs', 'Began']}
            keyOf={({ id }) => id}
            draw={(job) => <JobRow job={job} />}
          />
        </div>
      )}
      <h2>Workloads</h2>
      <Problem of={workloads} what="The workloads cannot be shown" />
      {workloads.value?.length === 0 && <p>No other process is known on a GPU.</p>}
      {(workloads.value ?? []).length > 0 && (
        <div class="jobs">
          <VirtualList
            rows={workloads.value ?? []}
            rowPx={rowPx}
            label="Workloads"
            titles={['Workload', 'State', 'Degradation', 'Memory', 'GPU']}
            keyOf={({ id }) => id}
            draw={(workload) => <WorkloadCells workload={workload} />}
          />
        </div>
      )}
    </>
  );
}

function progressOf({ steps, rate, stalled, joined, members, state }: Job): string {
  if (steps !== undefined && steps > 0) {
    const speed = rate === undefined ? '' : `, ${rate.toFixed(2)} a second`;
    return `${Math.round(steps)} steps${speed}${stalled === true ? ', stalled' : ''}`;
  }
  return state === 'running' && members > 1 ? `${joined ?? 0} of ${members} members have met` : '';
}

function JobRow({ job }: { job: Job }) {
  const { id, action, state, reason, gpus, createdAt } = job;
  return (
    <>
      <span role="cell">
        <a href={hrefOf('jobs', id)}>{shortName(action)}</a>
      </span>
      <span role="cell" class={state === 'failed' ? 'late' : ''} title={reason}>
        {state}
      </span>
      <span role="cell">{progressOf(job) || reason}</span>
      <span role="cell">{gpus}</span>
      <span role="cell" title={new Date(createdAt).toISOString()}>
        {ago(createdAt, now())}
      </span>
    </>
  );
}

function WorkloadCells({ workload }: { workload: WorkloadRow }) {
  const { name, origin, state, attested, device, invoker, memoryMiB } = workload;
  return (
    <>
      <span role="cell">
        {name} <small>{origin}</small>
      </span>
      <span role="cell" class={state === 'beyond-bound' ? 'late' : ''}>
        {attested === false ? 'unattested' : (state ?? 'not reported')}
      </span>
      <span role="cell">{degradationOf(workload)}</span>
      <span role="cell">{memoryMiB === undefined ? '' : memory(memoryMiB)}</span>
      <span role="cell">
        <a href={hrefOf('devices', device)}>{invoker}</a>
      </span>
    </>
  );
}

function degradationOf({ degradation, estimatedDegradation, maxDegradation, rate }: WorkloadRow): string {
  const bound = `at most ${percent(maxDegradation)}`;
  const speed = rate === undefined ? '' : `, ${rate.toFixed(2)} steps a second`;
  if (degradation !== undefined) return `${percent(degradation)} measured, ${bound}${speed}`;
  if (estimatedDegradation !== undefined) return `${percent(estimatedDegradation)} predicted, ${bound}${speed}`;
  return `${bound}${speed}`;
}

/** One training job: its progress, its runs and their logs; it can be stopped. */
export function JobPage({ id }: { id: string }) {
  const live = useLive<Job>(`gpu/jobs/${encodeURIComponent(id)}`);
  const job = live.value;
  const [said, setSaid] = useState('');
  const stop = (): void => {
    ask(`gpu/jobs/${encodeURIComponent(id)}`, { method: 'DELETE' }).then(
      () => setSaid('It is asked to end, and ended after 30 s if it does not.'),
      (error: unknown) => setSaid(error instanceof Error ? error.message : String(error)),
    );
  };
  return (
    <>
      <h1>Job {job === undefined ? id : shortName(job.action)}</h1>
      <Problem of={live} what="The job cannot be shown" />
      {job !== undefined && (
        <>
          <p>
            <span class={job.state === 'failed' ? 'problem' : ''}>{job.state}</span>
            {job.reason === undefined ? '' : `: ${job.reason}`}. <code>{id}</code>
          </p>
          <dl class="facts">
            {factsOf(job).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
          {job.devices !== undefined && job.devices.length > 0 && (
            <ul>
              {job.devices.map((device) => (
                <li key={device}>
                  <a href={hrefOf('devices', device)}>{device}</a>
                </li>
              ))}
            </ul>
          )}
          {!isOver(job) && (
            <p class="actions">
              <button type="button" disabled={job.state === 'stopping'} onClick={stop}>
                Stop the job
              </button>
            </p>
          )}
          <p role="status">{said}</p>
          <h2>Runs</h2>
          <Attempts job={job} />
        </>
      )}
    </>
  );
}

function factsOf(job: Job): [string, string | number][] {
  const { gpus, members, createdAt, endedAt, retryAt, timeLimitMs, checkpointUsedMiB } = job;
  const { restarts = 0, maxRestarts = 0, interruptions = 0 } = job;
  return [
    ['Function', job.action],
    ['GPUs', gpus],
    ['Members', members],
    ['Progress', progressOf(job) || 'none reported'],
    ['Began', ago(createdAt, now())],
    ...(endedAt === undefined ? [] : [['Ended', ago(endedAt, now())] as [string, string]]),
    ...(retryAt === undefined ? [] : [['Next run in', duration(Math.max(0, retryAt - now()))] as [string, string]]),
    ...(timeLimitMs === undefined ? [] : [['Time limit', duration(timeLimitMs)] as [string, string]]),
    ['Restarts', `${restarts} of ${maxRestarts}`],
    ['Interruptions', interruptions],
    ...(checkpointUsedMiB === undefined ? [] : [['Checkpoints', memory(checkpointUsedMiB)] as [string, string]]),
  ];
}

function Attempts({ job }: { job: Job }) {
  const latest = job.attempts.at(-1)?.number;
  const [chosen, setChosen] = useState<number>();
  const shown = chosen ?? latest;
  if (shown === undefined) return <p>None has begun.</p>;
  return (
    <>
      <div class="scrolled" role="region" aria-label="Runs" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              <th scope="col">Activation</th>
              <th scope="col">Began</th>
              <th scope="col">Ended</th>
              <th scope="col">Steps</th>
              <th scope="col">Log</th>
            </tr>
          </thead>
          <tbody>
            {job.attempts.map(({ number, activationId, startedAt, endedAt, reason, steps }) => (
              <tr key={number}>
                <td>{number}</td>
                <td>
                  {job.namespace === session.value?.namespace ? (
                    <a href={hrefOf('activations', activationId)}>{activationId.slice(0, 8)}</a>
                  ) : (
                    activationId.slice(0, 8)
                  )}
                </td>
                <td>{startedAt === undefined ? '' : ago(startedAt, now())}</td>
                <td>
                  {endedAt === undefined ? '' : ago(endedAt, now())} {reason}
                </td>
                <td>{steps}</td>
                <td>
                  <button type="button" aria-pressed={number === shown} onClick={() => setChosen(number)}>
                    Log of run {number}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Log of run {shown}</h2>
      <JobLog key={shown} id={job.id} attempt={shown} />
    </>
  );
}

/** A part of a run's log; without `next` it has ended. */
interface LogPart {
  attempt: number;
  lines: string[];
  next?: { attempt: number; from: number };
}

/** Lines that are kept in the page, at most. */
const mostLines = 50_000;
const againMs = 1000;

function JobLog({ id, attempt }: { id: string; attempt: number }) {
  const [lines, setLines] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState('');
  useEffect(() => {
    let isGone = false;
    const read = async (): Promise<void> => {
      for (let from = 0; !isGone;) {
        try {
          const path = `gpu/jobs/${encodeURIComponent(id)}/logs?attempt=${attempt}&from=${from}`;
          const part = (await ask(path)) as LogPart;
          if (isGone) return;
          setProblem('');
          if (part.lines.length > 0) setLines((before) => [...before, ...part.lines].slice(-mostLines));
          if (part.next === undefined || part.next.attempt !== attempt) return;
          const isMore = part.next.from > from;
          from = part.next.from;
          if (isMore) continue;
        } catch (error) {
          // The controller may be starting again: the next try goes on where this one has failed.
          if (!isGone) setProblem(error instanceof Error ? error.message : String(error));
        }
        await new Promise((resolve) => setTimeout(resolve, againMs));
      }
    };
    void read();
    return () => {
      isGone = true;
    };
  }, [id, attempt]);
  return (
    <>
      {problem !== '' && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <Logs id={`${id}-${attempt}`} lines={lines} />
    </>
  );
}
