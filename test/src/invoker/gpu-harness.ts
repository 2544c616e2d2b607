import type { Device, CordonRequest, LaunchFigures, NodeStatus, Placement, Share } from '@gpuwhisk/common/gpu';
import { gpuTable, cordonTable } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Container, GpuGrant } from '@gpuwhisk/invoker/containers/container-factory';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { DeviceEvent, DeviceSample, GpuDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import { GpuDriverError } from '@gpuwhisk/invoker/gpu-agent/drivers/gpu-driver';
import type { ShareEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { ShareError } from '@gpuwhisk/invoker/gpu-agent/enforcers/share-enforcer';
import { GpuAgent } from '@gpuwhisk/invoker/gpu-agent/gpu-agent';
import { reportingFactory, grantOf } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import type { GpuUser } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { SimulatedClock } from '../simulation/simulated-clock.js';

export const kind = 'nodejs:20';
export const deviceMiB = 40_960;

/** A device of 40 GiB: `GPU-0`, `GPU-1`. */
export function device(index: number): Device {
  return {
    uuid: `GPU-${index}`,
    index,
    name: 'NVIDIA A100-SXM4-40GB (simulated)',
    type: 'a100-40',
    smCount: 108,
    memoryMiB: deviceMiB,
    mode: 'timeslice',
    slices: [],
    simulated: true,
  };
}

/** An agent over a driver and an enforcer whose answers the test sets, and containers that are objects. */
export class GpuHarness {
  readonly clock = new SimulatedClock();
  readonly state = embeddedState(this.clock);
  devices = [device(0), device(1)];
  /** Processes of each device, by UUID. */
  processes: Record<string, DeviceSample['processes']> = {};
  driverFails = false;
  /** Utilisation of each device, as reported by the driver. */
  utilisation = 0.5;
  /** Process ids of the host that have ended. */
  readonly dead = new Set<number>();
  /** The container of each process. */
  readonly owners = new Map<number, string>();
  /** The enforcer's problem with each place. */
  readonly enforcerProblems = new Map<string, string>();
  /** Places whose enforcer answers no call. */
  readonly enforcerDead = new Set<string>();
  /** Places that the enforcer was asked to check. */
  readonly checked: string[] = [];
  /** Processes that run outside their share. */
  readonly escaped = new Set<number>();
  /** Whether the enforcer can change shares; then the processes that it serves, and its calls. */
  adjusts = false;
  readonly clients: number[] = [];
  readonly moved: { pid: number; share: Share; forAnother: boolean }[] = [];
  /** Launch figures of each process. */
  readonly launched = new Map<number, LaunchFigures>();
  /** Limits of the enforcer for new clients of each place, percent and MiB; then places where it cannot limit. */
  readonly ceilings = new Map<string, string>();
  readonly unlimited = new Set<string>();
  readonly opened: string[] = [];
  readonly ended: string[] = [];
  unbound = new Set<string>();
  private listener: (event: DeviceEvent) => void = () => undefined;
  private readonly factory = createSimulatedFactory({
    clock: this.clock,
    random: seededRandom(1),
    kinds: [kind],
    guest: {
      init: () => ({ then: { do: 'result', value: {} } }),
      run: () => ({ then: { do: 'hang' } }),
    },
  });
  readonly agent = new GpuAgent({
    invoker: 'invoker0',
    driver: this.driver(),
    enforcer: this.enforcer(),
    state: this.state,
    clock: this.clock,
    logger: createLogger({ level: 'silent' }),
    processes: {
      containerOf: (pid) => Promise.resolve(this.owners.get(pid)),
      isAlive: (pid) => Promise.resolve(!this.dead.has(pid)),
      startOf: (pid) => Promise.resolve(this.dead.has(pid) ? undefined : 1000 + pid),
      claimsOf: () => Promise.resolve(undefined),
    },
    access: () => ({ env: {}, binds: [], libraries: [], oneUser: false }),
  });

  static async open(change: (harness: GpuHarness) => void = () => undefined): Promise<GpuHarness> {
    const harness = new GpuHarness();
    change(harness);
    await harness.factory.start();
    harness.agent.attach({
      end: (container) => {
        harness.ended.push(container.id);
        void container.destroy();
      },
      unbound: () => harness.unbound,
      inHand: () => [],
    });
    await harness.clock.runUntil(harness.agent.start());
    return harness;
  }

  emit(event: DeviceEvent): void {
    this.listener(event);
  }

  /** Stores an operator's wish for a device, as the controller does. */
  async wish(device: string, wish: CordonRequest['wish']): Promise<void> {
    await this.state.setRow(cordonTable, device, { wish, at: this.clock.now() });
    await this.clock.runFor(100);
  }

  /** Lets this many samples pass, and delayed reports of changes. */
  async look(times = 1): Promise<NodeStatus> {
    await this.clock.runFor(times * 1000 + 100);
    return this.row();
  }

  /** The node's row in the GPU table. */
  async row(): Promise<NodeStatus> {
    const row = (await this.state.rows(gpuTable)).get('invoker0');
    if (row === undefined) throw new Error('The node has no row.');
    return row as unknown as NodeStatus;
  }

  /** A container with the grant of a placement; `pid` is its process. */
  async container(placement: Placement, pid: number, startMs = 0): Promise<Container> {
    const gpu = grantOf(placement);
    const container = await this.clock.runUntil(this.factory.create({ ...bareSpec(kind, 256), gpu }));
    this.agent.joined(container, gpu, startMs);
    this.owners.set(pid, container.id);
    return container;
  }

  /** Creates a container as a pool does; the container reports to the agent itself. */
  create(gpu: GpuGrant): Promise<Container> {
    return reportingFactory(this.factory, this.agent, this.clock).create({ ...bareSpec(kind, 256), gpu });
  }

  private driver(): GpuDriver {
    const refuse = (): Promise<never> => Promise.reject(new GpuDriverError('not here'));
    return {
      simulated: true,
      cuts: true,
      version: { driver: '580 (simulated)', cuda: '13.0' },
      devices: () => Promise.resolve(this.devices),
      sample: () => (this.driverFails ? refuse() : Promise.resolve(this.devices.map(({ uuid }) => this.sample(uuid)))),
      watch: (listener) => {
        this.listener = listener;
        return Promise.resolve({ close: () => Promise.resolve() });
      },
      sliceProfiles: () => Promise.resolve([]),
      setExclusive: refuse,
      setMig: refuse,
      createSlice: refuse,
      destroySlice: refuse,
      close: () => Promise.resolve(),
    };
  }

  private sample(uuid: string): DeviceSample {
    const processes = this.processes[uuid] ?? [];
    const usedMemoryMiB = processes.reduce((sum, { memoryMiB }) => sum + memoryMiB, 0);
    return { uuid, usedMemoryMiB, utilisation: this.utilisation, clockEvents: [], processes };
  }

  private enforcer(): ShareEnforcer {
    const canAdjust = (): boolean => this.adjusts;
    return {
      name: 'mps',
      get adjusts() {
        return canAdjust();
      },
      open: ({ uuid }) => {
        this.opened.push(uuid);
        this.enforcerProblems.delete(uuid);
        this.enforcerDead.delete(uuid);
        return Promise.resolve();
      },
      settings: ({ uuid }, share) =>
        this.enforcerDead.has(uuid)
          ? Promise.reject(new ShareError('it does not answer'))
          : Promise.resolve({
              env: { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(share.shareClass) },
              binds: [{ path: `/run/mps/${uuid}`, write: true }],
            }),
      gangSettings: (devices) =>
        Promise.resolve({ env: { CUDA_VISIBLE_DEVICES: devices.map(({ uuid }) => uuid).join(',') }, binds: [] }),
      limitClients: (uuid, _slice, { percent, memoryMiB }) => {
        if (this.unlimited.has(uuid)) return Promise.reject(new ShareError('it does not hold them'));
        this.ceilings.set(uuid, `${percent} % ${memoryMiB} MiB`);
        return Promise.resolve();
      },
      confirm: ({ pid }) => (this.escaped.has(pid) ? Promise.reject(new ShareError('no client')) : Promise.resolve()),
      adjust: ({ pid }, share, forAnother = false) => {
        if (!this.adjusts || !this.clients.includes(pid)) return Promise.reject(new ShareError('not here'));
        this.moved.push({ pid, share, forAnother });
        return Promise.resolve();
      },
      clients: (device) => Promise.resolve(this.clients.map((pid) => ({ pid, device }))),
      launches: ({ pid }) => {
        const figures = this.launched.get(pid);
        return figures === undefined ? Promise.reject(new ShareError('not here')) : Promise.resolve(figures);
      },
      terminate: () => Promise.resolve(),
      check: (uuid) => {
        this.checked.push(uuid);
        const problem = this.enforcerDead.has(uuid) ? 'it does not answer' : this.enforcerProblems.get(uuid);
        return Promise.resolve(problem);
      },
      shut: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
  }
}

/** A placement on `GPU-0` of a share with this memory. */
export function placementOf(memoryMiB: number, changes: Partial<Placement> = {}): Placement {
  const share = { shareClass: 50, smRequest: 0.5, smLimit: 0.5, memoryMiB } as const;
  return { invoker: 'invoker0', devices: ['GPU-0'], share, at: 0, epoch: 1, version: 1, ...changes };
}

/** The user of an activation of that id, of `/guest/ACTION`. */
export function userOf(activationId: string, action = 'a'): GpuUser {
  return { activationId, action: `/guest/${action}`, namespace: 'guest', isolation: 'namespace' };
}
