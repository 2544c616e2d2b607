import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Container, ContainerFactory, ContainerSpec } from '../containers/container-factory.js';
import type { GpuAgent } from './gpu-agent.js';

/** The factory, telling the agent of every container that has a GPU. */
export function toldToAgent(
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
