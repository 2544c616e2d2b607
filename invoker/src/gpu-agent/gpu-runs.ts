// Reports of activations and of the container factory to the GPU agent.
import type { GpuIsolation, Placement } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { ProvisioningError } from '../containers/container-factory.js';
import type { GpuGrant, Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import type { GpuAgent } from './gpu-agent.js';
import type { Ending } from './healer.js';

/** The GPU identity of an activation: its id and its owners. */
export interface GpuUser {
  activationId: string;
  /** `/namespace/action` of its code. */
  action: string;
  /** The action's version, where the message has one. */
  version?: string;
  /** Invocation namespace. */
  namespace: string;
  /** Subject of the caller, set for requests that may run as a batch: a container serves batches of one subject only. */
  subject?: string;
  isolation: GpuIsolation;
  /** Time limit of its run, ms; absent: not known. */
  timeLimitMs?: number;
  /** Set for a sample, whose run measures its function and is charged to no namespace. */
  isSample?: true;
}

/** Whether the container of one activation may serve the other after it. */
export function haveOneCaller(one: GpuUser | undefined, other: GpuUser): boolean {
  return one?.action === other.action && one.namespace === other.namespace && one.subject === other.subject;
}

/** Reports and questions of activations with a GPU to the agent. */
export interface GpuRuns {
  /** Reports that an activation runs in a container. */
  began(user: GpuUser, container: string): void;
  /** Reports that a container has loaded a function's code, in `ms`. */
  loaded(container: string, ms: number): void;
  /** Reports that an activation is over or runs elsewhere, after a run or without one. */
  ended(user: GpuUser): void;
  /** For how long others have used the GPU of an activation's run so far, ms; undefined if it does not run. */
  besideMs(activationId: string): number | undefined;
  /** Calls `listener` once when a run in the container is to end within a grace, unless it has ended before. */
  onRetire(container: string, listener: () => void): void;
  /** Whether a fault that is not known to be its own has failed a run in a container, whose ending is known then. Never rejects. */
  isInnocent(container: string): Promise<boolean>;
  /** Why the agent ended a container; undefined if it did not. The last 1000 endings are known. */
  endingOf(container: string): Ending | undefined;
}

/** The grant of a placement. Devices are sorted, so that a warm process on the same devices in another order serves. */
export function grantOf({ devices, slice, share, partsMiB }: Placement): GpuGrant {
  const sorted = [...devices].sort();
  const parts = partsMiB && sorted.map((device) => partsMiB[devices.indexOf(device)] ?? share.memoryMiB);
  return { devices: sorted, ...(slice !== undefined && { slice }), share, ...(parts && { partsMiB: parts }) };
}

/**
 * Key of a grant; equal for grants whose containers are interchangeable. The memory of a function that spans several devices
 * counts as a whole: a warm process keeps the parts that it was started with.
 */
export function grantKey({ devices, slice, share, partsMiB }: GpuGrant): string {
  const memory =
    partsMiB === undefined ? `${share.memoryMiB}` : `${partsMiB.reduce((sum, part) => sum + part, 0)} in all`;
  return `${slice ?? devices.join('+')} ${share.shareClass} ${memory}`;
}

/** The GPU identity of a message's activation. */
export function gpuUserOf({ activationId, action, user, gpuNeed, sample }: ActivationMessage): GpuUser {
  return {
    activationId,
    action: `/${action.path}/${action.name}`,
    ...(action.version !== undefined && { version: action.version }),
    namespace: user.namespace.name,
    ...(gpuNeed !== undefined && gpuNeed.batch > 1 && { subject: user.subject }),
    isolation: gpuNeed?.isolation ?? 'namespace',
    ...(gpuNeed !== undefined && { timeLimitMs: gpuNeed.timeoutMs }),
    ...(sample !== undefined && { isSample: true }),
  };
}

/**
 * A factory that reports every container with a GPU to the agent. A container whose GPU had a function's fault while it
 * started is destroyed: the fault has hit its CUDA context, too.
 */
export function reportingFactory(
  factory: ContainerFactory,
  agent: Pick<GpuAgent, 'joined' | 'failed' | 'faultSince'>,
  clock: Pick<Clock, 'monotonicMs'>,
): ContainerFactory {
  const told = async (spec: ContainerSpec, making: Promise<Container>): Promise<Container> => {
    const beganMs = clock.monotonicMs();
    const container = await making.catch((error: unknown) => {
      if (spec.gpu !== undefined) agent.failed(spec.gpu);
      throw error;
    });
    if (spec.gpu === undefined) return container;
    if (agent.faultSince(spec.gpu, beganMs)) {
      agent.failed(spec.gpu);
      await container.destroy();
      const why = `A function's fault on GPU ${spec.gpu.devices.join(', ')} hit a process that was being started.`;
      throw new ProvisioningError(why, why, false, true);
    }
    agent.joined(container, spec.gpu, clock.monotonicMs() - beganMs);
    return container;
  };
  return {
    start: () => factory.start(),
    supports: (kind) => factory.supports(kind),
    create: (spec, ahead) => told(spec, factory.create(spec, ahead)),
    // Those with a GPU are no copies.
    copy: (spec, ahead) =>
      (spec.gpu === undefined ? factory.copy?.(spec, ahead) : undefined) ?? Promise.resolve(undefined),
    prewarm: (spec) => told(spec, factory.prewarm(spec)),
    match: (prewarmed, wanted) => factory.match(prewarmed, wanted),
    close: () => factory.close(),
  };
}
