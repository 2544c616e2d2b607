import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { cordonTable } from '@gpuwhisk/common/gpu';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { createSimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import type { SimulatedDriver } from '@gpuwhisk/invoker/gpu-agent/drivers/simulated-driver';
import { createSimulatedEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/simulated-enforcer';
import type { SimulatedEnforcer } from '@gpuwhisk/invoker/gpu-agent/enforcers/simulated-enforcer';
import type { Ledger } from './ledger.js';

/** The GPUs' driver, enforcer and state in the platform's present life. */
interface Known {
  driver: SimulatedDriver;
  enforcer: SimulatedEnforcer;
  state: ClusterState;
  uuids: readonly string[];
}

/** The machine's GPUs, and the lease to place functions on them. Both outlive the platform. */
export class GpuHardware {
  /** The scheduler's lease; `epoch` is undefined while another controller holds it. */
  readonly lease: { epoch: number | undefined } = { epoch: 1 };
  private greatestEpoch = 1;
  private readonly lost = new Set<number>();
  private known: Known | undefined;

  constructor(
    readonly count: number,
    private readonly clock: Clock,
    private readonly random: Random,
    private readonly ledger: Ledger,
  ) {}

  /** Makes a driver and an enforcer for a new life. */
  async start(state: ClusterState): Promise<{ driver: SimulatedDriver; enforcer: SimulatedEnforcer }> {
    const driver = createSimulatedDriver(Array.from({ length: this.count }, () => 'a100-40' as const));
    const enforcer = createSimulatedEnforcer();
    const uuids = (await driver.devices()).map(({ uuid }) => uuid);
    for (const at of this.lost) driver.setLost(uuids[at] ?? '', true);
    this.known = { driver, enforcer, state, uuids };
    // A starting scheduler takes a new lease.
    this.lease.epoch = ++this.greatestEpoch;
    return { driver, enforcer };
  }

  /** Drops the driver and enforcer of a process that has ended. */
  dead(): void {
    this.known = undefined;
  }

  /** One device falls off the bus, returns, reports an error of its function, or loses its MPS daemon. */
  deviceFault(): void {
    const { random, ledger, known } = this;
    if (known === undefined) return;
    const at = random.uint32() % this.count;
    const device = known.uuids[at] ?? '';
    const faults = [
      (): void => void this.restore(),
      (): void => {
        this.lost.add(at);
        known.driver.setLost(device, true);
      },
      (): void => known.driver.emit({ type: 'xid', device, code: 31 }),
      (): void => known.enforcer.fail(device),
    ];
    const which = random.uint32() % faults.length;
    ledger.note(`GPU ${at}: ${['all are back', 'is lost', 'Xid 31', 'its MPS daemon ends'][which]}`);
    if (this.lost.has(at) && which > 1) return;
    faults[which]?.();
  }

  /**
   * The lease gets a new epoch, goes to another controller, or is used by one that has lost it and does not know yet.
   */
  leaseFault(): void {
    const { random, lease, ledger } = this;
    const which = random.uint32() % 3;
    if (which === 0) lease.epoch = ++this.greatestEpoch;
    else lease.epoch = which === 1 ? undefined : Math.max(1, this.greatestEpoch - 1);
    ledger.note(`the lease: epoch ${lease.epoch ?? 'of another'}`);
  }

  /** Ends all faults of GPUs and lease. */
  async heal(): Promise<void> {
    this.lease.epoch = ++this.greatestEpoch;
    await this.restore();
  }

  private async restore(): Promise<void> {
    const { known, clock, lost } = this;
    if (known === undefined || lost.size === 0) return;
    const found = [...lost].map((at) => known.uuids[at] ?? '');
    lost.clear();
    for (const device of found) {
      known.driver.setLost(device, false);
      known.driver.emit({ type: 'mig-changed', device });
      await known.state.setRow(cordonTable, device, { wish: 'uncordon', at: clock.now() });
    }
  }
}
