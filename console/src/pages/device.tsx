import { useLive } from '../hooks.js';
import { memory, percent } from '../format.js';
import type { GpuDevice } from '../model.js';
import { Problem } from '../parts/problem.js';
import { FillBar, ShareBar } from '../parts/share-bar.js';

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
    <table>
      <thead>
        <tr>
          {['Function', 'On', 'Request', 'Limit', 'Memory', 'Held', 'Running'].map((title) => (
            <th key={title} scope="col">
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {functions.map((one, at) => (
          <tr key={one.container ?? at}>
            <td>{one.action ?? (one.container === undefined ? 'of another namespace' : 'ready process')}</td>
            <td>{profileOf(one.slice)}</td>
            <td>{percent(one.smRequest)}</td>
            <td>{percent(one.smLimit)}</td>
            <td>{memory(one.memoryMiB)}</td>
            <td>{one.heldMiB === undefined ? '' : memory(one.heldMiB)}</td>
            <td>{one.running}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
