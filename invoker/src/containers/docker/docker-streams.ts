// The streams of a Docker container: the engine's multiplexed output, and the socket of a runtime that speaks frames.
import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';

const headerBytes = 8;
const stderrType = 2;

/**
 * Splits the engine's multiplexed output of a container without a terminal. Each piece has a header of 8 bytes: the stream
 * in the first byte, the length in the last four. Both outputs end with `source`, which waits for full outputs.
 */
export function demultiplex(source: Duplex, head: Buffer, stdout: Writable, stderr: Writable): void {
  const splitter = new Splitter(stdout, stderr);
  let ended = false;
  const end = (): void => {
    if (ended) return;
    ended = true;
    stdout.end();
    stderr.end();
  };
  splitter.push(head);
  const isBlocked = (): boolean => stdout.writableNeedDrain || stderr.writableNeedDrain;
  source.on('data', (chunk: Buffer) => {
    splitter.push(chunk);
    if (isBlocked()) source.pause();
  });
  for (const output of [stdout, stderr]) {
    output.on('drain', () => {
      if (!isBlocked()) source.resume();
    });
  }
  source.on('end', end);
  source.on('close', end);
  // A broken connection counts as ended. Callers that need the reason ask the engine.
  source.on('error', end);
}

/** The text of a complete multiplexed answer. */
export function textOfMultiplexed(bytes: Buffer): string {
  const pieces: Buffer[] = [];
  const sink = { write: (piece: Buffer) => pieces.push(piece) > 0 };
  new Splitter(sink, sink).push(bytes);
  return Buffer.concat(pieces).toString();
}

class Splitter {
  private header = Buffer.alloc(0);
  private left = 0;
  private type = 0;

  constructor(
    private readonly stdout: Pick<Writable, 'write'>,
    private readonly stderr: Pick<Writable, 'write'>,
  ) {}

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) {
      if (this.left === 0) {
        const wanted = headerBytes - this.header.length;
        this.header = Buffer.concat([this.header, rest.subarray(0, wanted)]);
        rest = rest.subarray(wanted);
        if (this.header.length < headerBytes) return;
        this.type = this.header.readUInt8(0);
        this.left = this.header.readUInt32BE(4);
        this.header = Buffer.alloc(0);
        continue;
      }
      const piece = rest.subarray(0, this.left);
      this.left -= piece.length;
      rest = rest.subarray(piece.length);
      (this.type === stderrType ? this.stderr : this.stdout).write(piece);
    }
  }
}

/** Longest path of a Unix socket, bytes. */
export const maxSocketPathBytes = 107;

/** The streams of a runtime, in the order in which the runtime connects them. */
export interface RuntimeStreams {
  stdout: Socket;
  stderr: Socket;
  channel: Socket;
  /** The socket for runs; absent if the runtime takes none. */
  runs?: Socket;
}

/** A listening socket for one runtime. */
export interface RuntimeSocket {
  /** Resolves once the runtime has connected all its streams; otherwise never. */
  streams: Promise<RuntimeStreams>;
  /** Accepts no more connections; streams that `streams` returned stay open, others end. Idempotent. */
  close(): Promise<void>;
}

/** Listens at `path`, which must not exist, for the streams of one runtime; `servesRuns` as RuntimeLaunch.servesRuns. */
export async function openRuntimeSocket(path: string, servesRuns = false): Promise<RuntimeSocket> {
  const server = createServer({ pauseOnConnect: true });
  const waiting: Socket[] = [];
  const close = async (): Promise<void> => {
    server.close();
    // Sockets that are not read would never report their end.
    for (const socket of waiting.splice(0)) socket.destroy();
    await rm(path, { force: true });
  };
  const streams = new Promise<RuntimeStreams>((resolve) => {
    let taken = false;
    server.on('connection', (socket) => {
      // A failure ends the stream, which the stream's reader sees.
      socket.on('error', () => undefined);
      if (taken) return void socket.destroy();
      waiting.push(socket);
      const [stdout, stderr, channel, runs] = waiting;
      if (!stdout || !stderr || !channel || (servesRuns && !runs)) return;
      taken = true;
      waiting.length = 0;
      resolve({ stdout, stderr, channel, ...(runs && { runs }) });
    });
  });
  await listening(server, path);
  // The container has another user. Other users have no access to the folder.
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
