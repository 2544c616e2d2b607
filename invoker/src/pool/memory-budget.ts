/** The memory that containers claim by their specs, within a bound. */
export class MemoryBudget {
  /** What is claimed now, MiB. */
  claimedMiB = 0;
  /** The part of it whose containers are being destroyed, MiB. */
  releasingMiB = 0;

  constructor(
    private readonly limitMiB: number,
    /** Called when memory has become free. */
    private readonly freed: () => void,
  ) {}

  /** Takes memory if it is free. */
  claim(memoryMiB: number): boolean {
    if (this.claimedMiB + memoryMiB > this.limitMiB) return false;
    this.claimedMiB += memoryMiB;
    return true;
  }

  release(memoryMiB: number): void {
    this.claimedMiB -= memoryMiB;
    this.freed();
  }

  /** What has to be freed for `memoryMiB` beyond what is on its way; 0 or less: nothing. */
  missingMiB(memoryMiB: number): number {
    return this.claimedMiB + memoryMiB - this.limitMiB - this.releasingMiB;
  }
}
