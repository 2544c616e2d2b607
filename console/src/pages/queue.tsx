import type { GpuQueued } from '@gpuwhisk/common/gpu';
import { useLive } from '../hooks.js';
import { duration, memory } from '../format.js';
import { Problem } from '../parts/problem.js';
import { VirtualList } from '../parts/virtual-list.js';

const rowPx = 44;

/** The activations that wait for a GPU, in the order of the queue, and why they wait. */
export function QueuePage() {
  const queue = useLive<GpuQueued[]>('gpu/queue');
  const waiting = [...(queue.value ?? [])].sort((one, other) => one.position - other.position);
  return (
    <>
      <h1>Queue</h1>
      <Problem of={queue} what="The queue cannot be shown" />
      {queue.value?.length === 0 && <p>Nothing waits for a GPU.</p>}
      {waiting.length > 0 && (
        <VirtualList
          rows={waiting}
          rowPx={rowPx}
          label="Activations that wait"
          keyOf={({ activationId }) => activationId}
          titles={['Action', 'Waited', 'Why', 'Needs', 'SLO']}
          draw={(one) => <WaitingRow one={one} />}
        />
      )}
    </>
  );
}

function WaitingRow({ one }: { one: GpuQueued }) {
  const { position, action, waitedMs, sloMs, memoryMiB, gpus, refusals, rejected } = one;
  const [first] = rejected;
  const why = refusals[0] ?? (first === undefined ? '' : `${first.what}: ${first.reason}`);
  return (
    <>
      <span role="cell">
        {position}. {action}
      </span>
      <span role="cell" class={sloMs !== undefined && waitedMs > sloMs ? 'late' : ''}>
        {duration(waitedMs)}
      </span>
      <span role="cell" title={why}>
        {why}
      </span>
      <span role="cell">
        {memory(memoryMiB)}
        {gpus > 1 ? ` on each of ${gpus} GPUs` : ''}
      </span>
      <span role="cell">{sloMs === undefined ? 'best effort' : duration(sloMs)}</span>
    </>
  );
}
