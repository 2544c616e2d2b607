import type { GpuQueued } from '@gpuwhisk/common/gpu';
import { useLive } from '../hooks.js';
import { memory, percent } from '../format.js';
import type { GpuDevice } from '../model.js';
import { Problem } from '../parts/problem.js';
import { FillBar, ShareBar } from '../parts/share-bar.js';
import { VirtualList } from '../parts/virtual-list.js';
import { hrefOf } from '../route.js';

const rowPx = 44;

/** All GPUs and what is on them, and how many activations wait. */
export function OverviewPage() {
  const devices = useLive<GpuDevice[]>('gpu/devices');
  const queue = useLive<GpuQueued[]>('gpu/queue');
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
      </dl>
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

function Figure({ name, value, note }: { name: string; value: number | string; note: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {value} <small>{note}</small>
      </dd>
    </div>
  );
}
