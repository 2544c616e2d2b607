import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Engine } from './engine.js';

/** Containers that are removed at once at the start. */
const maxAtOnce = 10;
/** How often what could not be removed is tried again, ms. */
const againMs = 5000;

/** The containers that are to go from the engine: what it cannot remove now is tried again until it is closed. */
export class Removals {
  private readonly waiting = new Set<string>();
  private closed = false;

  constructor(
    private readonly engine: Pick<Engine, 'remove'>,
    private readonly clock: Clock,
    private readonly warn: (message: string) => void,
  ) {}

  /** Kills and removes a container, by its id or name; again later if that fails. Never rejects. */
  async remove(engineId: string): Promise<void> {
    this.waiting.add(engineId);
    try {
      await this.engine.remove(engineId);
      this.waiting.delete(engineId);
    } catch (error) {
      this.warn(`Container ${engineId} could not be removed: ${(error as Error).message}`);
      this.removeLater(engineId);
    }
  }

  /** Removes one that the engine may make yet. */
  removeLater(engineId: string): void {
    if (this.closed) return;
    this.waiting.add(engineId);
    this.clock.setBackgroundTimer(againMs, () => {
      if (!this.closed) void this.remove(engineId);
    });
  }

  /** Removes them all, however many; rejects as the engine does. */
  async removeAll(engineIds: readonly string[]): Promise<void> {
    const left = [...engineIds];
    const worker = async (): Promise<void> => {
      for (let id = left.pop(); id !== undefined; id = left.pop()) await this.engine.remove(id);
    };
    await Promise.all(Array.from({ length: maxAtOnce }, worker));
  }

  /** Tries once more what waits; what stays then is what the next life finds. */
  async close(): Promise<void> {
    this.closed = true;
    await Promise.all([...this.waiting].map((engineId) => this.remove(engineId)));
  }
}
