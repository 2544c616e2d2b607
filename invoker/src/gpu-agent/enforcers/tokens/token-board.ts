import { columnNames, columnsBytes, columnsOver, type TokenColumns } from '@gpuwhisk/gpu/tokens/token-machine';

/** Words of the header, as native/token-server/board.h has them. */
export const headerWords = 16;
export const decidedWord = 2;

/** The memory that this thread, the one that decides and the one that ticks share. */
export interface TokenBoard {
  words: Int32Array;
  columns: TokenColumns;
}

/** A board for `places` clients, or the one that lies in `memory`. */
export function boardOver(places: number, memory?: SharedArrayBuffer): TokenBoard {
  const headerBytes = headerWords * Int32Array.BYTES_PER_ELEMENT;
  const buffer = memory ?? new SharedArrayBuffer(headerBytes + columnsBytes(places));
  return { words: new Int32Array(buffer), columns: columnsOver(buffer, headerBytes, places) };
}

/** Throws Error if the addon was built for another layout. */
export function checkLayout(addon: { columns: string[]; headerWords: number }): void {
  if (addon.headerWords !== headerWords || addon.columns.join() !== columnNames.join()) {
    throw new Error('The addon of kernel tokens was built for another version.');
  }
}
