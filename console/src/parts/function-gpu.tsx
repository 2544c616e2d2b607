// What is known of a function on GPUs: its trials, measured shares, and forecasts against what came.
import type { ComponentChildren } from 'preact';
import { now } from '../clock.js';
import { duration, memory, percent } from '../format.js';
import { useLive } from '../hooks.js';
import { Table } from './table.js';
import { Chart } from './chart.js';
import { Problem } from './problem.js';

/** Performance of a function on a kind of GPU; times in ms, shares of `shares` in thousandths of the SMs. */
interface Learned {
  function: string;
  version: string;
  gpuType: string;
  mode: string;
  shares?: { request: number; limit: number; batch: number; keepsGoal: boolean; reason: string };
  batches: {
    batch: number;
    /** Sizes of the inputs up to `upTo`: bytes of the parameters, or as the function reports them. */
    inputs?: { unit: string; upTo: number };
    soloMs?: number;
    measured: boolean;
    startMs?: number;
    runs: number;
    slowdown?: { predicted: number; measured: number; runs: number };
  }[];
  heldMiB?: number;
  /** Its version runs alone until then, epoch ms. */
  alone?: { until: number; state: 'suspect' | 'faulting' };
}

/** Trials of a function at shares in percent. */
interface Profile {
  state: string;
  problem?: string;
  kinds: {
    gpuType: string;
    mode: string;
    trials: { batch: number; share: number; ms?: number | null; failure?: string; isOverlong?: boolean }[];
    mostTrials: number;
    failed?: string;
  }[];
}

/** Measured shares of functions that run together. */
interface Quota {
  gpuType: string;
  mode: string;
  jobs: { function: string }[];
  points: { shares: number[]; slowdowns: number[]; measurements: number }[];
  search: { stage: string; reason?: string };
}

interface Forecast {
  function: string;
  requests: number[];
  expected: (number | null)[];
  now?: { requests: number; active: number };
}

/** The part of a function's page about GPUs. `name`: `/namespace/action`. */
export function FunctionGpu({ name }: { name: string }) {
  return (
    <>
      <h2>On GPUs</h2>
      <Performance name={name} />
      <ShareSurface name={name} />
      <Quotas name={name} />
      <Forecasts name={name} />
    </>
  );
}

/** Rows of a table, told apart by their places. */
function placed(rows: readonly ComponentChildren[][]) {
  return rows.map((cells, at) => ({ key: String(at), cells }));
}

const times = (value: number): string => `${value.toFixed(2)} ×`;
const msOf = (ms: number | undefined): string => (ms === undefined ? '' : duration(ms));

function Performance({ name }: { name: string }) {
  const learned = useLive<Learned[]>('gpu/functions');
  const own = (learned.value ?? []).filter((one) => one.function === name);
  const rows = own.flatMap(({ gpuType, mode, version, batches, heldMiB }) =>
    batches.map(({ batch, inputs, soloMs, measured, startMs, runs, slowdown }) => [
      `${gpuType}, ${mode}`,
      version,
      batch,
      inputs === undefined ? '' : `up to ${inputs.upTo}${inputs.unit === 'bytes' ? ' B' : ''}`,
      soloMs === undefined ? '' : `${duration(soloMs)}${measured ? '' : ', estimated'}`,
      msOf(startMs),
      runs,
      slowdown === undefined ? '' : `${times(slowdown.predicted)} / ${times(slowdown.measured)}`,
      heldMiB === undefined ? '' : memory(heldMiB),
    ]),
  );
  return (
    <>
      <h3>Measured times</h3>
      <Problem of={learned} what="They cannot be shown" />
      {own.slice(0, 1).map(({ version, alone }) => alone && <p key={version}>{aloneText(version, alone)}</p>)}
      {learned.value !== undefined && rows.length === 0 && <p>The function has not been measured yet.</p>}
      {rows.length > 0 && (
        <Table
          label="Measured times"
          titles={[
            ...['GPU', 'Version', 'Batch', 'Input', 'Alone', 'Start', 'Runs'],
            ...['Slowdown predicted / measured', 'Memory held'],
          ]}
          rows={placed(rows)}
        />
      )}
      {own.map(({ gpuType, mode, shares }) =>
        shares === undefined ? null : (
          <p key={`${gpuType} ${mode}`}>
            {gpuType}, {mode}: asks for {percent(shares.request / 1000)} of the SMs, may have{' '}
            {percent(shares.limit / 1000)} at batch {shares.batch}. {shares.reason}
          </p>
        ),
      )}
    </>
  );
}

function aloneText(version: string, { until, state }: NonNullable<Learned['alone']>): string {
  const end = new Date(until).toLocaleString();
  return state === 'faulting'
    ? `Version ${version} runs alone until ${end}: a fault of it ended the runs of all functions on its MPS server.`
    : `Version ${version} runs alone until five runs have succeeded: it was one of several that a fault on their MPS server ended.`;
}

/** Times by batch (rows) and share (columns). */
function ShareSurface({ name }: { name: string }) {
  const profile = useLive<Profile>(`gpu/functions/${encodeURIComponent(name)}/profile`);
  const { state, problem, kinds = [] } = profile.value ?? {};
  return (
    <>
      <h3>Share surface</h3>
      <Problem of={profile} what="It cannot be shown" />
      {state !== undefined && (
        <p>
          Trials: {state}
          {problem === undefined ? '' : `; ${problem}`}.
        </p>
      )}
      {kinds.map(({ gpuType, mode, trials, mostTrials, failed }) => {
        const shares = [...new Set(trials.map(({ share }) => share))].sort((one, other) => one - other);
        const batches = [...new Set(trials.map(({ batch }) => batch))].sort((one, other) => one - other);
        const cellOf = (batch: number, share: number): string => {
          const trial = trials.find((one) => one.batch === batch && one.share === share);
          if (trial === undefined) return '';
          if (trial.isOverlong === true) return 'too long';
          return typeof trial.ms === 'number' ? duration(trial.ms) : (trial.failure ?? '');
        };
        return (
          <div key={`${gpuType} ${mode}`}>
            <p>
              {gpuType}, {mode}: {trials.length} of {mostTrials} trials at most
              {failed === undefined ? '' : `; ${failed}`}.
            </p>
            {trials.length > 0 && (
              <Table
                label={`Share surface on ${gpuType}, ${mode}`}
                titles={['Batch', ...shares.map((share) => `${share} %`)]}
                rows={placed(batches.map((batch) => [batch, ...shares.map((share) => cellOf(batch, share))]))}
              />
            )}
          </div>
        );
      })}
    </>
  );
}

function Quotas({ name }: { name: string }) {
  const quotas = useLive<Quota[]>('gpu/quotas');
  const own = (quotas.value ?? []).filter(({ jobs }) => jobs.some((job) => job.function === name));
  return (
    <>
      <h3>Quota rows</h3>
      <Problem of={quotas} what="They cannot be shown" />
      {quotas.value !== undefined && own.length === 0 && <p>No shares beside other functions have been measured.</p>}
      {own.length > 0 && (
        <Table
          label="Quota rows"
          titles={['GPU', 'Functions', 'Shares', 'Slowdowns', 'Measurements', 'Search']}
          rows={placed(
            own.flatMap(({ gpuType, mode, jobs, points, search }) => {
              const together = jobs.map((job) => job.function).join(', ');
              const about = `${search.stage}${search.reason === undefined ? '' : `: ${search.reason}`}`;
              const [gpu, none] = [`${gpuType}, ${mode}`, { shares: [], slowdowns: [], measurements: 0 }];
              return (points.length === 0 ? [none] : points.slice(0, 10)).map((point) => [
                gpu,
                together,
                point.shares.map((share) => `${share} %`).join(', '),
                point.slowdowns.map(times).join(', '),
                point.measurements,
                about,
              ]);
            }),
          )}
        />
      )}
    </>
  );
}

const minuteMs = 60_000;

function Forecasts({ name }: { name: string }) {
  const forecasts = useLive<Forecast[]>('gpu/forecasts');
  const own = forecasts.value?.find((one) => one.function === name);
  const present = Math.floor(now() / minuteMs) * minuteMs;
  return (
    <>
      <h3>Forecast against actual</h3>
      <Problem of={forecasts} what="It cannot be shown" />
      {forecasts.value !== undefined && own === undefined && <p>The function was not called in the last day.</p>}
      {own !== undefined && (
        <>
          <Chart
            title="Requests a minute"
            unit=""
            times={own.requests.map((_, at) => present - (own.requests.length - 1 - at) * minuteMs)}
            series={[
              { label: 'Came', values: own.requests },
              { label: 'Expected', values: own.expected },
            ]}
          />
          <p>
            {own.now === undefined
              ? 'No model has been trained yet, so that nothing is forecast.'
              : `Expected in this minute: ${own.now.requests.toFixed(1)} requests; any with a probability of ${percent(own.now.active)}.`}
          </p>
        </>
      )}
    </>
  );
}
