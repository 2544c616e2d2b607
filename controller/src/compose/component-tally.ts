import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isJsonObject } from '@gpuwhisk/common/json';

/** What the components of one sequence or composition came to so far. */
export class ComponentTally {
  /** Their activations, in order. */
  readonly ids: string[] = [];
  durationMs = 0;

  constructor(
    /** The largest memory limit so far; undefined while there is none. */
    public memoryMiB: number | undefined,
  ) {}

  /** Counts a component that ended. */
  add({ activationId, duration, start, end, annotations }: WhiskActivation): void {
    this.ids.push(activationId);
    this.durationMs += duration ?? end - start;
    const limits = parameterValue(annotations, 'limits');
    const memory = isJsonObject(limits) ? limits.memory : undefined;
    if (typeof memory === 'number') this.memoryMiB = Math.max(this.memoryMiB ?? 0, memory);
  }
}
