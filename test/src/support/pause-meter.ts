// Loaded by Node before a server (`--import`): tells the longest pause of its event loop, ms, to each client of the Unix
// socket that PAUSE_METER names, and begins again.
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const path = process.env.PAUSE_METER;
if (isMainThread && path !== undefined) {
  // Processes of the server have other event loops.
  delete process.env.PAUSE_METER;
  const resolutionMs = 2;
  const delays = monitorEventLoopDelay({ resolution: resolutionMs });
  delays.enable();
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    // Delays are times between two samples.
    socket.end(String(Math.max(0, delays.max / 1e6 - resolutionMs)));
    delays.reset();
  });
  // An earlier process of the server leaves its socket behind.
  rmSync(path, { force: true });
  server.listen(path).unref();
}
