import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { StartJournal } from '@gpuwhisk/common/bus/durable';
import type { Config } from '@gpuwhisk/common/config';
import type { Jobs } from '@gpuwhisk/common/jobs/jobs';
import type { LogRing, Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Tracer } from '@gpuwhisk/common/tracing';

/** Engines that controllers and invokers use, embedded or networked. */
export interface Engines {
  config: Config;
  clock: Clock;
  random: Random;
  logger: Logger;
  logRing: LogRing;
  metrics: Metrics;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  store: ArtifactStore;
  bus: MessageBus;
  state: ClusterState;
  /** Present on controllers only; without it no background work is done. */
  jobs?: Jobs;
  /** On this machine's disk. */
  marks: Pick<StartJournal, 'mark' | 'startedBefore'>;
}

/** Bounds of the messages that wait in a topic of an invoker or a controller. */
export function queueLimits({ maxQueuedActivations, maxQueuedBytes }: Config): {
  durable: boolean;
  maxPendingMessages: number;
  maxPendingBytes: number;
} {
  return { durable: true, maxPendingMessages: maxQueuedActivations, maxPendingBytes: maxQueuedBytes };
}
