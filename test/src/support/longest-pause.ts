import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/** Address of the module that a server loads (`--import`) to tell its pauses. */
export const pauseMeter = new URL('pause-meter.js', import.meta.url).href;

const timeoutMs = 60_000;

/** The longest pause of a server's event loop since the last call, ms. `meter`: its PAUSE_METER. */
export async function longestPauseMs(meter: string): Promise<number> {
  const socket = connect(meter);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error('the server told no pause')));
  const told = await text(socket);
  if (told === '') throw new Error('the server told no pause');
  return Number(told);
}
