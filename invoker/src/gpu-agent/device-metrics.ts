import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { Device, DeviceStatus, Resident } from '@gpuwhisk/common/gpu';

/** What is shown of a node's devices. */
export interface ShownDevices {
  devices: readonly Device[];
  status: readonly DeviceStatus[];
  residents: readonly Resident[];
  isShared(device: string): boolean;
  /** Restarts of the enforcers of a device's shares. */
  restarts(device: string): number;
}

type Labels = Record<string, string>;
/** Values with the labels beside `device` and `model`; none: the device does not tell. */
type Values = readonly (readonly [value: number | undefined, more?: Labels])[];

const MiB = 1024 * 1024;
const states = ['healthy', 'leaving', 'cordoned', 'draining', 'offline'] as const;

/** Shows the devices of a node in `registry`. */
export function showDevices(registry: Registry, look: () => ShownDevices): void {
  type ValuesOf = (
    device: Device,
    status: DeviceStatus | undefined,
    residents: readonly Resident[],
    shown: ShownDevices,
  ) => Values;
  const show = (
    type: typeof Gauge | typeof Counter,
    name: string,
    help: string,
    more: string[],
    of: ValuesOf,
  ): void => {
    registry.removeSingleMetric(name);
    const metric: Gauge | Counter = new type({
      name,
      help,
      labelNames: ['device', 'model', ...more],
      registers: [registry],
      collect() {
        metric.reset();
        const shown = look();
        for (const device of shown.devices) {
          const { uuid, type: model } = device;
          const status = shown.status.find((one) => one.uuid === uuid);
          const residents = shown.residents.filter((one) => one.device === uuid);
          for (const [value, labels] of of(device, status, residents, shown))
            if (value !== undefined) metric.inc({ device: uuid, model, ...labels }, value);
        }
      },
    });
  };
  const gauge = (name: string, help: string, more: string[], of: ValuesOf): void => show(Gauge, name, help, more, of);
  gauge(
    'gpuwhisk_gpu_memory_bytes',
    'Memory of a device: total, used, charged to instances',
    ['kind'],
    (device, status, all) => [
      [device.memoryMiB * MiB, { kind: 'total' }],
      [(status?.usedMemoryMiB ?? 0) * MiB, { kind: 'used' }],
      [sum(all, ({ memoryMiB }) => memoryMiB) * MiB, { kind: 'charged' }],
    ],
  );
  gauge('gpuwhisk_gpu_utilisation_ratio', 'Part of the time in which a kernel ran', [], (_, status) => [
    [status?.utilisation],
  ]);
  gauge('gpuwhisk_gpu_sm_activity_ratio', 'Part of the SMs in use', [], (_, status) => [[status?.smActivity]]);
  gauge(
    'gpuwhisk_gpu_share_ratio',
    'Shares of instances together, in whole devices: requests, limits',
    ['kind'],
    (_, __, all) => [
      [sum(all, ({ share }) => share.smRequest), { kind: 'request' }],
      [sum(all, ({ share }) => share.smLimit), { kind: 'limit' }],
    ],
  );
  gauge('gpuwhisk_gpu_instances', 'Instances and pre-warmers on a device', ['state'], (_, __, all) => {
    const busy = all.filter(({ activations }) => activations.length > 0).length;
    return [
      [busy, { state: 'busy' }],
      [all.length - busy, { state: 'idle' }],
    ];
  });
  gauge('gpuwhisk_gpu_health', 'Whether a device is in a state', ['state'], (_, status) =>
    states.map((state) => [status?.health.state === state ? 1 : 0, { state }] as const),
  );
  gauge('gpuwhisk_gpu_temperature_celsius', 'Temperature', [], (_, status) => [[status?.temperatureC]]);
  gauge('gpuwhisk_gpu_power_watts', 'Power', [], (_, status) => [[status?.powerW]]);
  gauge(
    'gpuwhisk_gpu_sharing_up',
    'Whether shares of a device are enforced: 0 where MPS fails',
    [],
    ({ uuid }, _, __, shown) => [[shown.isShared(uuid) ? 1 : 0]],
  );
  const restarts = "Restarts of MPS, or of another enforcer of a device's shares";
  show(Counter, 'gpuwhisk_gpu_sharing_restarts_total', restarts, [], ({ uuid }, _, __, shown) => [
    [shown.restarts(uuid)],
  ]);
}

function sum(all: readonly Resident[], of: (one: Resident) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}
