// What activations and the container factory report to the GPU agent.
import type { GpuIsolation, Placement } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuGrant, Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import type { GpuAgent } from './gpu-agent.js';
import type { Ending } from './healer.js';

/** The activation that gets a GPU, and whose it is. */
export interface GpuUser {
  activationId: string;
  /** `/namespace/action` of its code. */
  action: string;
  /** That it runs for. */
  namespace: string;
  /** Where requests run as one: whose it is, as none of another subject runs with or after it in its container. */
  subject?: string;
  isolation: GpuIsolation;
  /** Whether it is a sample: run to measure its time, and charged to no namespace. */
  isSample?: true;
}

/** Whether the container of one serves the other too, once it is free. */
export function haveOneCaller(one: GpuUser | undefined, other: GpuUser): boolean {
  return one?.action === other.action && one.namespace === other.namespace && one.subject === other.subject;
}

/** What an activation with a GPU reports to the agent, and asks it. */
export interface GpuRuns {
  /** It runs in a container. */
  began(user: GpuUser, container: string): void;
  /** The container has loaded a function's code, in so many ms. */
  loaded(container: string, ms: number): void;
  /** It is over, or goes elsewhere, whether it ran or not. */
  ended(user: GpuUser): void;
  /** Why the agent ended a container; undefined if it did not. Known for the last 1000. */
  endingOf(container: string): Ending | undefined;
}

/** What a placement grants. Of several devices the order does not matter, so that a warm process of the same ones serves. */
export function grantOf({ devices, slice, share }: Placement): GpuGrant {
  return { devices: [...devices].sort(), ...(slice !== undefined && { slice }), share };
}

/** Equal for grants whose containers are interchangeable. */
export function grantKey({ devices, slice, share }: GpuGrant): string {
  return `${slice ?? devices.join('+')} ${share.shareClass} ${share.memoryMiB}`;
}

/** Whose a message is. */
export function gpuUserOf({ activationId, action, user, gpuNeed, sample }: ActivationMessage): GpuUser {
  return {
    activationId,
    action: `/${action.path}/${action.name}`,
    namespace: user.namespace.name,
    ...(gpuNeed !== undefined && gpuNeed.batch > 1 && { subject: user.subject }),
    isolation: gpuNeed?.isolation ?? 'namespace',
    ...(sample !== undefined && { isSample: true }),
  };
}

/** The factory, which reports every container with a GPU to the agent. */
export function reportingFactory(
  factory: ContainerFactory,
  agent: Pick<GpuAgent, 'joined' | 'failed'>,
  clock: Pick<Clock, 'monotonicMs'>,
): ContainerFactory {
  const told = async (spec: ContainerSpec, making: Promise<Container>): Promise<Container> => {
    const beganMs = clock.monotonicMs();
    const container = await making.catch((error: unknown) => {
      if (spec.gpu !== undefined) agent.failed(spec.gpu);
      throw error;
    });
    if (spec.gpu !== undefined) agent.joined(container, spec.gpu, clock.monotonicMs() - beganMs);
    return container;
  };
  return {
    start: () => factory.start(),
    supports: (kind) => factory.supports(kind),
    create: (spec, ahead) => told(spec, factory.create(spec, ahead)),
    prewarm: (spec) => told(spec, factory.prewarm(spec)),
    match: (prewarmed, wanted) => factory.match(prewarmed, wanted),
    close: () => factory.close(),
  };
}
