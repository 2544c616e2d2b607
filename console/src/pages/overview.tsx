import type { GpuQueued } from '@gpuwhisk/common/gpu';
import { useMemo } from 'preact/hooks';
import { activityLines, attainment, sumOf } from '../activity.js';
import type { ActivitySecond } from '../activity.js';
import { useLive } from '../hooks.js';
import { memory, percent } from '../format.js';
import type { GpuDevice } from '../model.js';
import { Chart } from '../parts/chart.js';
import { Figure } from '../parts/figure.js';
import { Problem } from '../parts/problem.js';
import { FillBar, ShareBar } from '../parts/share-bar.js';
import { VirtualList } from '../parts/virtual-list.js';
import { hrefOf } from '../route.js';

const rowPx = 44;

/** Seconds that the present rate is of. */
const presentS = 10;

/** All GPUs and what is on them, how many activations wait, and what ran in the last minutes. */
export function OverviewPage() {
  const devices = useLive<GpuDevice[]>('gpu/devices');
  const queue = useLive<GpuQueued[]>('gpu/queue');
  const activity = useLive<ActivitySecond[]>('activity');
  const seconds = activity.value ?? [];
  const all = devices.value ?? [];
  const instances = all.flatMap(({ functions }) => functions);
  const late = (queue.value ?? []).filter(({ waitedMs, sloMs = Infinity }) => waitedMs > sloMs).length;
  const usedMiB = all.reduce((sum, { usedMemoryMiB = 0 }) => sum + usedMemoryMiB, 0);
  return (
    <>
      <h1>Overview</h1>
      <dl class="figures">
        <Figure name="GPUs" value={all.length} note={statesOf(all)} />
        <Figure name="Instances" value={instances.length} note={`${instances.filter(isBusy).length} busy`} />
        <Figure
          name="Memory in use"
          value={memory(usedMiB)}
          note={`of ${memory(all.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0))}`}
        />
        <Figure name="Waiting" value={(queue.value ?? []).length} note={late === 0 ? '' : `${late} past their SLO`} />
        <RateFigures seconds={seconds} />
      </dl>
      <Problem of={activity} what="What has run cannot be shown" />
      <ActivityCharts seconds={seconds} />
      <Problem of={devices} what="The GPUs cannot be shown" />
      {devices.value?.length === 0 && (
        <p>
          No invoker has a GPU. <code>npm start -- --gpus sim:a100-40x2</code> starts the platform with simulated ones.
        </p>
      )}
      {all.length > 0 && (
        <VirtualList
          rows={all}
          rowPx={rowPx}
          label="GPUs"
          keyOf={({ uuid }) => uuid}
          titles={['GPU', 'State', 'Shares', 'Memory', 'Busy']}
          draw={(device) => <DeviceRow device={device} />}
        />
      )}
    </>
  );
}

/** Activations a second now, and the SLO attainment of the whole window. */
function RateFigures({ seconds }: { seconds: readonly ActivitySecond[] }) {
  const present = seconds.slice(-presentS);
  const rate = sumOf(present, 'activations') / Math.max(1, present.length);
  const failed = sumOf(seconds, 'failed');
  const attained = attainment(seconds);
  return (
    <>
      <Figure
        name="Activations a second"
        value={rate.toFixed(rate < 10 ? 1 : 0)}
        note={failed === 0 ? '' : `${failed} failed in 5 min`}
      />
      <Figure
        name="SLO attainment"
        value={attained === null ? 'none' : `${attained.toFixed(attained === 100 ? 0 : 1)} %`}
        note={`of ${sumOf(seconds, 'withSlo')} with an SLO in 5 min`}
      />
    </>
  );
}

/** Charts of the last five minutes. */
function ActivityCharts({ seconds }: { seconds: readonly ActivitySecond[] }) {
  // They change once a point is whole.
  const lastPoint = Math.floor(((seconds.at(-1)?.at ?? 0) / 1000 + 1) / 5);
  const { times, rates, attained } = useMemo(() => activityLines(seconds), [lastPoint]);
  const charts = useMemo(
    () => ({
      runs: [
        { label: 'ended', values: rates.activations },
        { label: 'failed', values: rates.failed },
      ],
      starts: [
        { label: 'warm', values: rates.warm },
        { label: 'cold', values: rates.cold },
        { label: 'pre-warmed', values: rates.prewarmed },
        { label: 'injected', values: rates.injected },
      ],
      attained: [{ label: 'met their SLO', values: attained }],
    }),
    [rates, attained],
  );
  if (times.length < 2) return null;
  return (
    <div class="charts">
      <Chart title="Activations" unit="/s" times={times} series={charts.runs} />
      <Chart title="Starts by kind" unit="/s" times={times} series={charts.starts} />
      <Chart title="SLO attainment" unit="%" times={times} series={charts.attained} most={100} />
    </div>
  );
}

const isBusy = ({ running }: { running: number }): boolean => running > 0;

function statesOf(devices: readonly GpuDevice[]): string {
  const counts = new Map<string, number>();
  for (const { health } of devices) counts.set(health.state, (counts.get(health.state) ?? 0) + 1);
  return Array.from(counts, ([state, count]) => `${count} ${state}`).join(', ');
}

function DeviceRow({ device }: { device: GpuDevice }) {
  const { uuid, invoker, index, type, mode, simulated, health, memoryMiB, usedMemoryMiB = 0, utilisation = 0 } = device;
  return (
    <>
      <span role="cell">
        <a href={hrefOf('devices', uuid)}>
          {invoker} / {index}
        </a>{' '}
        <small>
          {type}, {mode}
          {simulated ? ', simulated' : ''}
        </small>
      </span>
      <span role="cell" class={`state ${health.state}`} title={(health.reasons ?? []).join('; ')}>
        {health.state}
      </span>
      <span role="cell">
        <ShareBar device={device} />
      </span>
      <span role="cell">
        <FillBar part={usedMemoryMiB / memoryMiB} label={`${memory(usedMemoryMiB)} of ${memory(memoryMiB)}`} />
      </span>
      <span role="cell">{percent(utilisation)}</span>
    </>
  );
}
