/**
 * Adds bytes to those that came before. Small pieces are put together, so that there are some tens at most, however small they come:
 * each would else take some hundred bytes of memory. A byte is copied once each time that its piece grows by half.
 */
export function gather(pieces: Buffer[], piece: Buffer): void {
  let from = pieces.length;
  let bytes = piece.length;
  for (; from > 0 && (pieces[from - 1] as Buffer).length <= 2 * bytes; from--)
    bytes += (pieces[from - 1] as Buffer).length;
  const smaller = pieces.splice(from);
  pieces.push(smaller.length === 0 ? piece : Buffer.concat([...smaller, piece], bytes));
}
