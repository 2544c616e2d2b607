import type { Duplex, Writable } from 'node:stream';

const headerBytes = 8;
const stderrType = 2;

/**
 * Splits what the engine sends of a container without a terminal: pieces with a header each, a byte that tells the stream
 * and, in its second half, the length. Both outputs end when `source` does, which waits for outputs that are full.
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
  // A connection that broke has ended; whoever waits for the end asks the engine why.
  source.on('error', end);
}

/** The text of a whole answer of that form. */
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
