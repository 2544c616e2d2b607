import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';

/** Longest path of a Unix socket, bytes. */
export const maxSocketPathBytes = 107;

/** The streams of a runtime that connected, in the order in which it does. */
export interface RuntimeStreams {
  stdout: Socket;
  stderr: Socket;
  channel: Socket;
}

/** A socket for one runtime. */
export interface RuntimeSocket {
  /** Resolves once it has connected all its streams; never if it does not. */
  streams: Promise<RuntimeStreams>;
  /** Lets nobody connect any more; streams that were handed over stay as they are, others end. Idempotent. */
  close(): Promise<void>;
}

/** Listens at `path`, which nothing may be at, for the three streams of one runtime. */
export async function openRuntimeSocket(path: string): Promise<RuntimeSocket> {
  const server = createServer({ pauseOnConnect: true });
  const waiting: Socket[] = [];
  const close = async (): Promise<void> => {
    server.close();
    // Nobody reads them, so that their end would never be seen.
    for (const socket of waiting.splice(0)) socket.destroy();
    await rm(path, { force: true });
  };
  const streams = new Promise<RuntimeStreams>((resolve) => {
    let taken = false;
    server.on('connection', (socket) => {
      // Its end is all that a failure means; whoever reads it sees that.
      socket.on('error', () => undefined);
      if (taken) return void socket.destroy();
      waiting.push(socket);
      const [stdout, stderr, channel] = waiting;
      if (!stdout || !stderr || !channel) return;
      taken = true;
      waiting.length = 0;
      resolve({ stdout, stderr, channel });
    });
  });
  await listening(server, path);
  // The container's user is another one. The folder is closed to everybody else.
  await chmod(path, 0o777);
  return { streams, close };
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
