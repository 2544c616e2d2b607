// Space of the store's file, and the writes that it is enough for.
import { StoreFullError } from './artifact-store.js';
import type { SpaceAhead } from '../system/space-ahead.js';

const MiB = 1024 * 1024;
/** Space that is allocated ahead, where the disk has it. */
const aheadBytes = 64 * MiB;
/** What a write takes beside its own bytes: the pages on the way to its rows, copied. */
const pathBytes = MiB / 2;

/**
 * Space that writes of a kind leave to the others: new entities and activations stop first, then records of accepted
 * activations, then accounts and data about GPUs. The last MiBs are for what makes room. A merge of a thousand deferred rows,
 * which follows the write of a record, takes about 5 MiB.
 */
export const leaving = { acceptance: 28 * MiB, record: 16 * MiB, platform: 12 * MiB, removal: MiB } as const;

/** The most that a merge of deferred rows takes. */
export const mergeCost = 5 * MiB;
/** The most that a step of the expiry takes: a MiB for a hundred records' rows, and a merge before. */
export const expiryCost = (records: number): number => mergeCost + Math.ceil(records / 100) * MiB;

/** The least space with which the store opens. */
const openingBytes = 2 * MiB;

/** The most that a document of `bytes` takes in the file: pages that are half full, and its rows. */
export const documentCost = (bytes: number): number => 2 * bytes + 8192;

/**
 * Admits writes of LMDB only where the space that is allocated ahead is enough: with a disk that is full, a commit of the
 * library (0.9.90, mdb.c:4742) writes a message behind the end of its buffer and damages the process's memory.
 */
export class StoreRoom {
  /** Bytes ahead at the last look. */
  private seen = 0;
  /** Costs of writes that have not ended. */
  private running = 0;
  /** Costs of writes that have ended since the last look began. */
  private ended = 0;
  /** Whether the disk gave less than was asked for at the last look. */
  private refused = false;
  private looking: Promise<void> | undefined;

  private constructor(private readonly space: SpaceAhead) {}

  /** Looks for the first time. Rejects with StoreFullError if there is not enough to open the store. */
  static async open(space: SpaceAhead): Promise<StoreRoom> {
    const room = new StoreRoom(space);
    await room.look(aheadBytes);
    if (room.left < openingBytes) throw new StoreFullError();
    return room;
  }

  /**
   * Whether the disk has refused space, and too little is left for new entities and activations. Looks again by itself if so.
   * While a look has not ended, and the one before got all it asked for, there is no reason to refuse anything.
   */
  get isFull(): boolean {
    if (!this.space.isHeld) this.lookBehind();
    if (this.left >= leaving.acceptance) return false;
    this.lookBehind();
    return this.refused;
  }

  /**
   * Runs a write of `bytes` at most once that leaves `keep`, and waits while space is allocated. Rejects with StoreFullError,
   * before the write begins, if the disk refuses the space.
   */
  async write<Result>(bytes: number, keep: number, work: () => Promise<Result>): Promise<Result> {
    const cost = bytes + pathBytes;
    // What is not allocated can be gone by now.
    if (!this.space.isHeld) await this.look(Math.max(aheadBytes, cost + keep));
    // Other writes may take what a look has found, and what they looked for may be less.
    while (this.left < cost + keep) {
      await this.look(Math.max(aheadBytes, cost + keep));
      if (this.left < cost + keep && this.refused) throw new StoreFullError();
    }
    this.running += cost;
    if (this.left < aheadBytes / 2) this.lookBehind();
    try {
      return await work();
    } finally {
      this.running -= cost;
      this.ended += cost;
    }
  }

  close(): Promise<void> {
    return this.space.close();
  }

  private get left(): number {
    return this.seen - this.running - this.ended;
  }

  /** Looks how much is ahead, and has more allocated until `wanted` is left; or joins the look that has begun. */
  private look(wanted: number): Promise<void> {
    this.looking ??= this.lookNow(wanted + this.running).finally(() => (this.looking = undefined));
    return this.looking;
  }

  /** Looks while nothing waits for it. A disk that does not answer fails the writes that need the look. */
  private lookBehind(): void {
    this.look(aheadBytes).catch(() => undefined);
  }

  private async lookNow(wanted: number): Promise<void> {
    // Writes that end from now on may be missing in what is seen.
    this.ended = 0;
    this.seen = await this.space.extend(wanted);
    this.refused = this.seen < wanted;
  }
}
