// Instances that come and go, as others published them.
import { BenchDataError, readBenchData, readTable } from '@gpuwhisk/bench/data/csv';

/** An event of a set of instances. */
export interface InstanceEvent {
  atS: number;
  isStart: boolean;
  id: string;
  kind: 'training' | 'inference' | 'llm';
  /** Devices that it needs. */
  gpus: number;
  /** Fractions of a device's SMs. */
  request: number;
  limit: number;
  /** On each device. */
  memoryGb: number;
}

/** Sizes of Dilu's instance sets that are at hand. */
export const diluSetSizes = [100, 200, 400, 800] as const;

const kinds: Readonly<Record<string, InstanceEvent['kind']>> = {
  training: 'training',
  inference: 'inference',
  'llm-inference': 'llm',
};

/** Dilu's set of `size` instances: their starts and ends in order. Throws BenchDataError. */
export async function readDiluInstances(size: (typeof diluSetSizes)[number], folder: string): Promise<InstanceEvent[]> {
  const file = `scheduling/dilu_instances_${size}.jsonl`;
  const lines = (await readBenchData(file, folder)).split('\n').filter((line) => line !== '');
  return lines.map((line, at) => eventOf(line, () => `'${file}', line ${at + 1}`));
}

function eventOf(line: string, where: () => string): InstanceEvent {
  const event = JSON.parse(line) as Record<string, unknown>;
  const { t_s: atS, action, instance: id, type, gpu_num: gpus, sm_request: request, sm_limit: limit } = event;
  const { memory_gb: memory } = event;
  const kind = typeof type === 'string' ? kinds[type] : undefined;
  const isSound =
    [atS, gpus, request, limit].every((value) => typeof value === 'number' && Number.isFinite(value)) &&
    (action === 'start' || action === 'delete') &&
    typeof id === 'string' &&
    kind !== undefined &&
    Array.isArray(memory) &&
    memory.length === gpus;
  if (!isSound) throw new BenchDataError(`${where()}: not the start or end of an instance.`);
  const [memoryGb, ...others] = memory as number[];
  if (memoryGb === undefined || others.some((one) => one !== memoryGb)) {
    throw new BenchDataError(`${where()}: devices of one instance with different memory.`);
  }
  return {
    atS: atS as number,
    isStart: action === 'start',
    id,
    kind,
    gpus: gpus as number,
    request: request as number,
    limit: limit as number,
    memoryGb,
  };
}

/** Alibaba's pods of 2023 with a GPU, as starts and ends. A pod has one share and no GPU memory. Throws BenchDataError. */
export async function readAlibabaPods(folder: string): Promise<Omit<InstanceEvent, 'kind'>[]> {
  const columns = {
    pod: 'text',
    num_gpu: 'number',
    gpu_milli: 'number',
    creation_s: 'number',
    deletion_s: 'number',
  } as const;
  const rows = await readTable('scheduling/alibaba_gpu2023_pods.csv', columns, folder);
  return rows
    .filter(({ num_gpu: gpus, creation_s: from, deletion_s: to }) => gpus > 0 && to > from)
    .flatMap(({ pod: id, num_gpu: gpus, gpu_milli: milli, creation_s: from, deletion_s: to }) => {
      const share = milli / 1000;
      const one = { id, gpus, request: share, limit: share, memoryGb: 0 };
      return [
        { ...one, atS: from, isStart: true },
        { ...one, atS: to, isStart: false },
      ];
    });
}
