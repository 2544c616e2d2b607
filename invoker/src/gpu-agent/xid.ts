/**
 * What an Xid says: the function's own fault (every client of its MPS server is lost with it), the hardware's (no new work
 * until an operator has looked), the device gone, or a note that changes nothing.
 */
export type XidClass = 'function' | 'hardware' | 'lost' | 'note';

/** As NVIDIA's "Xid Errors" lists them. */
const known: Readonly<Record<number, readonly [XidClass, string]>> = {
  13: ['function', 'graphics engine exception'],
  31: ['function', 'memory page fault'],
  43: ['function', 'a channel stopped processing'],
  45: ['note', 'channels were removed after an earlier error'],
  48: ['hardware', 'uncorrectable memory error'],
  54: ['lost', 'auxiliary power is not connected'],
  61: ['hardware', 'internal microcontroller breakpoint'],
  62: ['hardware', 'internal microcontroller halt'],
  63: ['note', 'memory row remapping recorded'],
  64: ['hardware', 'memory row remapping failed'],
  69: ['function', 'graphics engine class error'],
  74: ['hardware', 'NVLink error'],
  79: ['lost', 'the device has fallen off the bus'],
  92: ['hardware', 'many corrected memory errors'],
  94: ['function', 'contained memory error'],
  95: ['hardware', 'uncontained memory error'],
  119: ['hardware', 'the system processor does not answer'],
  120: ['hardware', 'the system processor failed'],
};

/** The class of an Xid, and its meaning in words. One that is not known is noted. */
export function classifyXid(code: number): { class: XidClass; text: string } {
  const [kind, meaning] = known[code] ?? ['note', 'not known'];
  return { class: kind, text: `Xid ${code}: ${meaning}` };
}
