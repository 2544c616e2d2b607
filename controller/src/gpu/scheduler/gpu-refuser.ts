import type { RecentIds } from '@gpuwhisk/common/short-lived-map';
import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import { sampleNotRun } from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { GpuHandover, OnRefused } from '../handover/gpu-handover.js';
import type { GpuPlacer } from './gpu-placer.js';
import type { GpuQueue, WaitingActivation } from './gpu-queue.js';
import { refusedRecord } from '../../invoke/activation-message.js';

/** Dependencies of GpuRefuser. */
export interface GpuRefuserDependencies {
  queue: GpuQueue;
  placer: GpuPlacer;
  /** Activations that have ended: no copy of theirs may run. */
  over: RecentIds;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  clock: Clock;
  logger: Logger;
  metrics: GpuMetrics;
  /** To other controllers; absent: there are none. */
  handover?: Pick<GpuHandover, 'refused'>;
}

/** Ends activations that wait and are not run. */
export class GpuRefuser {
  private onRefused: OnRefused = () => false;

  constructor(private readonly dependencies: GpuRefuserDependencies) {}

  /** Sets the function that is called for refused activations. */
  tell(onRefused: OnRefused): void {
    this.onRefused = onRefused;
  }

  /** A sample that its agent gave back, or that an earlier process has left, is not run: its caller is told. */
  dropSample({ activationId }: ActivationMessage, reason: string): void {
    const { placer, over } = this.dependencies;
    over.add(activationId);
    placer.returned(activationId);
    this.onRefused(activationId, sampleNotRun(reason));
  }

  /** Ends one: its caller is told, or there is a record of it. */
  refuse(waiting: WaitingActivation, error: ApiError): void {
    const { message } = waiting;
    const { queue, placer, over, clock, records, recordLevels, logger, metrics } = this.dependencies;
    queue.remove(waiting);
    over.add(message.activationId);
    metrics.decided('failed');
    placer.note(message, { rejected: [] }, error.message);
    logger.warn({ activationId: message.activationId, reason: error.message }, 'an activation got no GPU');
    this.dependencies.handover?.refused(message, error);
    if (
      this.onRefused(message.activationId, error) ||
      !isRecordKept(recordLevels, recordedCall(message), ActivationStatus.whiskError)
    ) {
      waiting.done();
      return;
    }
    const record = refusedRecord(message, clock.now(), error.message);
    records.add(activationDocument(record, clock.now()), waiting.done);
  }
}
