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
 * activations, then accounts and data about GPUs. The last MiBs are for what makes room. A merge of a thousand deferred rows, which follows the write of a record,
 * takes about 5 MiB.
 */
export const leaving = { acceptance: 28 * MiB, record: 16 * MiB, platform: 12 * MiB, removal: MiB } as const;

/** The most that a step of the expiry takes: a hundred records' rows, and a merge before. */
export const expiryCost = 6 * MiB;

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
  private looking: Promise<void> | undefined;

  private constructor(private readonly space: SpaceAhead) {}

  /** Looks for the first time. Rejects with StoreFullError if there is not enough to open the store. */
  static async open(space: SpaceAhead): Promise<StoreRoom> {
    const room = new StoreRoom(space);
    await room.look(aheadBytes);
    if (room.left < openingBytes) throw new StoreFullError();
    return room;
  }

  /** Whether there is too little space for new entities and activations. Looks again by itself if so. */
  get isFull(): boolean {
    if (this.left >= leaving.acceptance) return false;
    // A disk that does not answer leaves the room as it is.
    this.look(aheadBytes).catch(() => undefined);
    return true;
  }

  /** Runs a write of `bytes` at most if that leaves `keep`. Rejects with StoreFullError if there is too little space. */
  async write<Result>(bytes: number, keep: number, work: () => Promise<Result>): Promise<Result> {
    const cost = bytes + pathBytes;
    if (this.left < Math.max(cost + keep, aheadBytes / 2)) {
      await this.look(Math.max(aheadBytes, cost + keep));
      if (this.left < cost + keep) throw new StoreFullError();
    }
    this.running += cost;
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

  /** Looks how much is ahead, and has more allocated until `wanted` is left. */
  private async look(wanted: number): Promise<void> {
    // What another caller looks for may be less.
    await this.looking;
    if (this.left >= wanted) return;
    this.looking ??= this.lookNow(wanted + this.running).finally(() => (this.looking = undefined));
    await this.looking;
  }

  private async lookNow(wanted: number): Promise<void> {
    // Writes that end from now on may be missing in what is seen.
    this.ended = 0;
    this.seen = await this.space.extend(wanted);
  }
}
