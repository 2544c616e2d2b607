import { useMemo } from 'preact/hooks';
import { useLive } from '../hooks.js';
import { duration, memory, percent } from '../format.js';
import type { GpuDevice, GpuDeviceHistory } from '../model.js';
import { Chart } from '../parts/chart.js';
import { Problem } from '../parts/problem.js';
import { FillBar, ShareBar } from '../parts/share-bar.js';
import { Table } from '../parts/table.js';
import { TimeLine } from '../parts/time-line.js';
import type { Span } from '../parts/time-line.js';

/** One GPU: its state, its slices, and the instances and workloads on it. */
export function DevicePage({ uuid }: { uuid: string }) {
  const devices = useLive<GpuDevice[]>('gpu/devices');
  const device = devices.value?.find((one) => one.uuid === uuid);
  if (device === undefined) {
    return (
      <>
        <h1>GPU</h1>
        <Problem of={devices} what="The GPU cannot be shown" />
        {devices.value !== undefined && <p>There is no GPU {uuid}. It may have left.</p>}
      </>
    );
  }
  const { invoker, index, name, mode, health, memoryMiB, usedMemoryMiB = 0, utilisation = 0, cut } = device;
  return (
    <>
      <h1>
        {invoker} / {index}
      </h1>
      <p>
        {name}, {mode}, <code>{uuid}</code>
      </p>
      <p>
        <span class={`state ${health.state}`}>{health.state}</span> {(health.reasons ?? []).join('; ')}
        {cut !== undefined && ` Cut into ${cut.profiles.join(', ') || 'one'}: ${cut.state}. ${cut.reason ?? ''}`}
      </p>
      <ShareBar device={device} />
      <p>
        <FillBar part={usedMemoryMiB / memoryMiB} label={`${memory(usedMemoryMiB)} of ${memory(memoryMiB)}`} />{' '}
        {memory(usedMemoryMiB)} of {memory(memoryMiB)} in use, busy for {percent(utilisation)} of the time
      </p>
      <History device={device} />
      <h2>Instances</h2>
      {device.functions.length === 0 ? <p>None.</p> : <Instances device={device} />}
      <h2>Workloads</h2>
      {device.workloads.length === 0 ? (
        <p>None.</p>
      ) : (
        <ul>
          {device.workloads.map(({ id, name: workload, memoryMiB: held = 0 }) => (
            <li key={id}>
              {workload}, {memory(held)}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Instances({ device: { functions, slices } }: { device: GpuDevice }) {
  const profileOf = (slice: string | undefined): string =>
    slices.find(({ uuid }) => uuid === slice)?.profile ?? 'the GPU';
  return (
    <Table
      label="Instances"
      titles={['Function', 'On', 'Request', 'Limit', 'Memory', 'Held', 'Running']}
      rows={functions.map((one, at) => ({
        key: one.container ?? String(at),
        cells: [
          one.action ?? (one.container === undefined ? 'of another namespace' : 'ready process'),
          profileOf(one.slice),
          percent(one.smRequest),
          percent(one.smLimit),
          memory(one.memoryMiB),
          one.heldMiB === undefined ? '' : memory(one.heldMiB),
          [one.running, ...(one.sets ?? []).map(({ text }) => text)].join(', '),
        ],
      }))}
    />
  );
}

/** What was on the device in the last ten minutes. */
function History({ device }: { device: GpuDevice }) {
  const history = useLive<GpuDeviceHistory>(`gpu/devices/${encodeURIComponent(device.uuid)}/history`);
  const { samples = [], instances = [], runs = [] } = history.value ?? {};
  const charts = useMemo(
    () => ({
      times: samples.map(({ at }) => at),
      use: [{ label: 'busy', values: samples.map(({ utilisation }) => (utilisation ?? NaN) * 100) }],
      memory: [{ label: 'in use', values: samples.map(({ usedMemoryMiB }) => usedMemoryMiB / 1024) }],
    }),
    [samples],
  );
  const [first, last] = [samples[0]?.at, samples.at(-1)?.at];
  return (
    <>
      <h2>Last minutes</h2>
      <Problem of={history} what="The last minutes cannot be shown" />
      {(first === undefined || last === undefined || last === first) && <p>Nothing has been recorded yet.</p>}
      {first !== undefined && last !== undefined && last > first && (
        <>
          <TimeLine label="Instances and workloads" spans={spansOf(device, instances)} from={first} to={last} />
          <div class="charts">
            <Chart title="Use" unit="%" times={charts.times} series={charts.use} most={100} />
            <Chart
              title="Memory"
              unit="GiB"
              times={charts.times}
              series={charts.memory}
              most={device.memoryMiB / 1024}
            />
          </div>
        </>
      )}
      <h2>Predicted and actual times</h2>
      <Predictions runs={runs} />
    </>
  );
}

function spansOf({ workloads, slices }: GpuDevice, instances: GpuDeviceHistory['instances']): Span[] {
  const profileOf = (uuid: string | undefined): string => {
    const profile = slices.find((slice) => slice.uuid === uuid)?.profile;
    return profile === undefined ? '' : `, on ${profile}`;
  };
  const functions = instances.map((one, at): Span => {
    const { container, action, smLimit, memoryMiB, slice, from, until } = one;
    const other = container === undefined ? 'of another namespace' : 'ready process';
    return {
      key: container ?? `other ${at}`,
      label: action ?? other,
      note: `${percent(smLimit)}, ${memory(memoryMiB)}${profileOf(slice)}`,
      from,
      ...(until !== undefined && { until }),
      share: smLimit,
      kind: action === undefined ? 'other' : 'own',
    };
  });
  const others = workloads.map(({ id, name, since, memoryMiB: held = 0, mpsPercent = 100 }): Span => ({
    key: `workload ${id}`,
    label: name,
    note: `workload, ${memory(held)}`,
    from: since,
    share: mpsPercent / 100,
    kind: 'workload',
  }));
  return [...functions, ...others];
}

/** Functions whose runs a chart shows, at most. */
const maxLines = 5;

/** How well the times of runs were predicted. */
function Predictions({ runs }: { runs: GpuDeviceHistory['runs'] }) {
  const byFunction = new Map<string, GpuDeviceHistory['runs']>();
  for (const run of runs) byFunction.set(run.action, [...(byFunction.get(run.action) ?? []), run]);
  const functions = [...byFunction].sort(([, one], [, other]) => other.length - one.length);
  const { times, series } = useMemo(() => {
    const inTime = [...runs].sort((one, other) => one.at - other.at);
    const partOf = ({ actualMs, predictedMs }: (typeof runs)[number]): number => (100 * actualMs) / predictedMs;
    return {
      times: inTime.map(({ at }) => at),
      series: functions.slice(0, maxLines).map(([action]) => ({
        label: action,
        values: inTime.map((run) => (run.action === action ? partOf(run) : null)),
      })),
    };
  }, [runs]);
  if (runs.length === 0)
    return <p>No run with a prediction yet: a function is predicted once its runs were measured.</p>;
  return (
    <>
      {times.length > 1 && <Chart title="Actual of predicted time" unit="%" times={times} series={series} joins />}
      <Table
        label="Predicted and actual times"
        titles={['Function', 'Runs', 'Predicted', 'Actual', 'Difference']}
        rows={functions.map(([action, own]) => {
          const predicted = median(own.map(({ predictedMs }) => predictedMs));
          const actual = median(own.map(({ actualMs }) => actualMs));
          return {
            key: action,
            cells: [action, own.length, duration(predicted), duration(actual), percent(actual / predicted - 1)],
          };
        })}
      />
      <p>
        <small>Medians of the last runs, loading excluded.</small>
      </p>
    </>
  );
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? 0;
}
