// An invoker of one node. A function's run time depends on its share and on the functions that run beside it.
import type { Delivery } from '@gpuwhisk/common/bus/message-bus';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Resident } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { GpuCluster } from './gpu-cluster.js';

interface Instance {
  resident: Resident;
  message: ActivationMessage | undefined;
}

/** A run that has begun. */
export interface SeenRun {
  name: string;
  isSample: boolean;
  shareClass: number;
  /** Requests that run as one. */
  batch: number;
  /** Monotonic ms; `endMs` is Infinity until the run ends. */
  startMs: number;
  endMs: number;
}

/** Duration of a cold start, ms. */
const coldMs = 300;

/** Runs arriving activations, each in an instance with its share that becomes idle afterwards. */
export class SimulatedNode {
  readonly runs: SeenRun[] = [];
  private instances: Instance[] = [];
  private made = 0;

  /** `tookMs`: duration of a function's run by name, share in percent, number of functions beside it, and batch. */
  constructor(
    private readonly cluster: GpuCluster,
    private readonly tookMs: (name: string, share: number, beside: number, batch: number) => number,
  ) {
    cluster.onArrival = (message, delivery) => this.take(message, delivery);
  }

  /** Restarts the machine: all instances are lost. */
  reset(): void {
    this.instances = [];
  }

  /** Writes the agent's row with the present instances. */
  tell(): Promise<void> {
    return this.cluster.tell(this.rowNow());
  }

  private take(message: ActivationMessage, delivery: Delivery): void {
    const { gpu, gpuNeed, action, user } = message;
    if (gpu === undefined || gpuNeed === undefined) throw new Error(`${action.name} was not placed`);
    const name = `/${action.path}/${action.name}`;
    const { shareClass } = gpu.share;
    this.instances = this.instances.filter(({ resident }) => gpu.reclaim?.includes(resident.container) !== true);
    const idle = this.instances.find(
      ({ resident, message: user }) =>
        user === undefined && resident.action === name && resident.share.shareClass === shareClass,
    );
    const instance = idle ?? {
      resident: {
        ...{ container: `c${(this.made += 1)}`, action: name, device: gpu.devices[0] ?? '', share: gpu.share },
        ...{ memoryMiB: gpu.share.memoryMiB, namespace: user.namespace.name, isolation: gpuNeed.isolation },
        activations: [],
      },
      message: undefined,
    };
    if (idle === undefined) this.instances.push(instance);
    instance.message = message;
    this.tellSoon();
    if (idle === undefined) this.cluster.clock.setTimer(coldMs, () => this.begin(instance, message, delivery, true));
    else this.begin(instance, message, delivery, false);
  }

  private begin(instance: Instance, message: ActivationMessage, delivery: Delivery, isCold: boolean): void {
    const { clock } = this.cluster;
    const { shareClass } = instance.resident.share;
    const beside = this.instances.filter((one) => one !== instance && one.message !== undefined).length;
    const { name } = message.action;
    const { batch = 1 } = message.sample ?? {};
    const wantedMs = this.tookMs(name, shareClass, beside, batch);
    const ms = Math.min(wantedMs, message.sample?.maxMs ?? Infinity);
    const run = {
      name,
      isSample: message.sample !== undefined,
      shareClass,
      batch,
      startMs: clock.monotonicMs(),
      endMs: Infinity,
    };
    this.runs.push(run);
    const start = clock.now() - (isCold ? coldMs : 0);
    clock.setTimer(ms, () => {
      run.endMs = clock.monotonicMs();
      instance.message = undefined;
      delivery.done();
      const annotations = [
        { key: 'timeout', value: ms < wantedMs },
        ...(isCold ? [{ key: 'initTime', value: coldMs }] : []),
      ];
      const record: WhiskActivation = {
        ...{ namespace: 'alice', name, version: '0.0.1', subject: 'alice', activationId: message.activationId },
        ...{ start, end: clock.now(), response: { statusCode: 0, result: {} }, logs: [], publish: false, annotations },
      };
      this.cluster.acknowledge(message, message.blocking ? record : undefined);
      this.tellSoon();
    });
  }

  private tellSoon(): void {
    this.cluster.clock.defer(() => void this.cluster.setRow(this.rowNow()));
  }

  private rowNow(): Parameters<GpuCluster['setRow']>[0] {
    return {
      residents: this.instances.map(({ resident, message }) => ({
        ...resident,
        activations: message === undefined ? [] : [message.activationId],
      })),
    };
  }
}
