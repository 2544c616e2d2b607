/** Bytes before a frame's payload: u32 LE length, u8 type, u32 LE id. */
export const headerBytes = 9;
/** Largest payload, bytes. */
export const maxFrameBytes = 64 * 1024 * 1024;

/** Receives frames. The buffer is only lent: what is kept must be copied. */
export interface FrameHandler {
  /** Bytes of the payload that are wanted; the rest is counted and dropped. */
  wanted(type: number, id: number, lengthBytes: number): number;
  /** A frame; `payload` holds the wanted bytes of its `lengthBytes`. */
  frame(type: number, id: number, payload: Buffer, lengthBytes: number): void;
  /** The length is over the maximum: nothing after it can be understood. */
  tooLong(lengthBytes: number): void;
}

/** Splits a stream of chunks into frames, without copying those that lie within one chunk. */
export class FrameReader {
  private readonly header = Buffer.alloc(headerBytes);
  private headerFilled = 0;
  private type = 0;
  private id = 0;
  private length = 0;
  private received = 0;
  private keep = 0;
  private payload: Buffer | undefined;
  private broken = false;

  constructor(private readonly handler: FrameHandler) {}

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length && !this.broken) at = this.payload ? this.continueFrame(chunk, at) : this.start(chunk, at);
  }

  private start(chunk: Buffer, at: number): number {
    if (this.headerFilled === 0 && chunk.length - at >= headerBytes)
      return this.open(chunk, at, chunk, at + headerBytes);
    const taken = Math.min(headerBytes - this.headerFilled, chunk.length - at);
    chunk.copy(this.header, this.headerFilled, at, at + taken);
    this.headerFilled += taken;
    if (this.headerFilled < headerBytes) return at + taken;
    this.headerFilled = 0;
    return this.open(this.header, 0, chunk, at + taken);
  }

  private open(header: Buffer, headerAt: number, chunk: Buffer, at: number): number {
    const length = header.readUInt32LE(headerAt);
    const type = header.readUInt8(headerAt + 4);
    const id = header.readUInt32LE(headerAt + 5);
    if (length > maxFrameBytes) {
      this.broken = true;
      this.handler.tooLong(length);
      return chunk.length;
    }
    const keep = Math.min(length, this.handler.wanted(type, id, length));
    if (chunk.length - at >= length) {
      this.handler.frame(type, id, chunk.subarray(at, at + keep), length);
      return at + length;
    }
    this.type = type;
    this.id = id;
    this.length = length;
    this.keep = keep;
    this.received = 0;
    this.payload = Buffer.allocUnsafe(keep);
    return this.continueFrame(chunk, at);
  }

  private continueFrame(chunk: Buffer, at: number): number {
    const payload = this.payload;
    if (!payload) return at;
    const taken = Math.min(this.length - this.received, chunk.length - at);
    if (this.received < this.keep) chunk.copy(payload, this.received, at, at + taken);
    this.received += taken;
    if (this.received === this.length) {
      this.payload = undefined;
      this.handler.frame(this.type, this.id, payload, this.length);
    }
    return at + taken;
  }
}

/** A frame, ready to be written in one piece. */
export function encodeFrame(type: number, id: number, payload: string | Buffer): Buffer {
  const length = Buffer.byteLength(payload);
  const frame = Buffer.allocUnsafe(headerBytes + length);
  frame.writeUInt32LE(length, 0);
  frame.writeUInt8(type, 4);
  frame.writeUInt32LE(id, 5);
  if (typeof payload === 'string') frame.write(payload, headerBytes, 'utf8');
  else payload.copy(frame, headerBytes);
  return frame;
}
