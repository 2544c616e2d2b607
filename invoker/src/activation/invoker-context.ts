import type { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { MessageBus } from '@gpuwhisk/common/bus/message-bus';
import type { ResultBounds } from '@gpuwhisk/common/entities/limits';
import type { UnlockArguments } from '@gpuwhisk/common/entities/parameter-encryption';
import type { ColdStartRecord } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { InvokerInstanceId } from '@gpuwhisk/common/messages';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Tracer } from '@gpuwhisk/common/tracing';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import type { GpuRuns } from '../gpu-agent/gpu-runs.js';
import type { SnapshotWish } from '../pool/snapshots.js';
import type { FollowedRuns } from './followed-runs.js';
import type { LearnedStarts } from './learned-starts.js';
import type { TrainingRuns } from './training-runs.js';

/** Services and settings that all activations of an invoker share. */
export interface InvokerContext {
  instance: InvokerInstanceId;
  bus: MessageBus;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  marks: StartJournal;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Absent: no user events are sent. */
  userEvents?: UserEvents;
  /** Absent: nothing is traced. */
  tracer?: Tracer;
  /** Counts the activations that end; absent: nothing is counted. */
  activity?: Pick<ActivityReporter, 'ended'>;
  /** Called with the parts of each start with a GPU that loaded code; absent on nodes without GPUs. */
  coldStarted?: (parts: ColdStartRecord) => void;
  /** The system's bounds on results. */
  resultBounds: ResultBounds;
  /** Idle containers with a GPU that are kept for a namespace without a limit of its own; absent: any number. */
  warmGpuContainers?: number | undefined;
  /** Decrypts arguments that come encrypted. */
  unlockArguments: UnlockArguments;
  /** The agent of this node's GPUs; absent on nodes without GPUs. */
  gpu?: GpuRuns;
  /** The runs of training jobs; absent on nodes without GPUs. */
  trainings?: TrainingRuns;
  /** Starts by learned imports. Absent: imports are not learned. */
  learned?: LearnedStarts;
  /** Is told of each load of a function, with its wish for a snapshot. Absent: there are no snapshots. */
  snapshots?: { loaded(of: string, revision: string, wish?: SnapshotWish): void };
  /** Sends lines of runs to those who follow them. Absent: runs cannot be followed. */
  followed?: Pick<FollowedRuns, 'began' | 'left' | 'ended'>;
  /** Whether runs may begin now. Absent: always. */
  mayBegin?: () => boolean;
  /** Whether the invoker is being stopped, which ends containers. */
  isClosing(): boolean;
}

/**
 * The invoker's durable journal of the activations that were handed to a container. The journal survives a restart, so that
 * an activation that is delivered again does not run again.
 */
export interface StartJournal {
  /** Writes the activation's start mark. The returned function resolves when the mark would survive a power loss. */
  mark(activationId: string): () => Promise<void>;
  /** Whether this invoker started the activation before its present process began. */
  startedBefore(activationId: string): boolean;
}
