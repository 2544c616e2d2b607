// Answers that are read from the store in pieces, and sent as they come.
import type { ServerResponse } from 'node:http';
import { notAllowed, tooManyInFlight } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import { ReadsFullError, TooManyRowsError } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { nextPiece, pieceBytes } from '@gpuwhisk/common/system/pieces';
import type { Answer } from './answer.js';

/** An answer up to this size is sent as a whole, with its length, bytes. */
const wholeBytes = 64 * 1024;
/** A client that reads nothing for so long is cut off, ms. */
const mostStalledMs = 30_000;

const [opening, comma, closing] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];

/** What `read` resolves with. Its errors for too many reads and too long ones become ApiErrors (429, 400). */
export async function readOrRefuse<Result>(read: Promise<Result>): Promise<Result> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ReadsFullError) throw tooManyInFlight(error.count, error.allowed);
    if (error instanceof TooManyRowsError) {
      throw notAllowed(`More than ${error.allowed} entries would have to be counted or skipped: narrow the range.`);
    }
    throw error;
  }
}

/**
 * The JSON list of texts that the store gives. Resolves when the list is complete or has 64 KiB; the rest of a longer one is read
 * while it is sent, no faster than the client takes it. If reading fails then, the connection is closed. Rejects as readOrRefuse.
 */
export async function listAnswer(
  texts: AsyncIterable<Uint8Array>,
  { clock, logger }: { clock: Clock; logger: Logger },
): Promise<Answer> {
  const iterator = texts[Symbol.asyncIterator]();
  const known: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < wholeBytes) {
    const { done, value } = await readOrRefuse(iterator.next());
    if (done === true) return { status: 200, body: Buffer.concat([opening, ...joined(known), closing]) };
    bytes += value.length;
    // Bytes of the store may be used until the next ones are asked for.
    known.push(bytes < wholeBytes ? Buffer.from(value) : value);
  }
  return streamedAnswer(piecesOf(known, iterator, clock), logger);
}

/**
 * The answer of JSON in pieces, the first of which is empty and marks the begin; each is asked for once those before have been handed to the
 * system, so that their bytes may be used again. If the pieces fail, or the client reads nothing for `stalledMs`, the connection is closed.
 */
export async function streamedAnswer(
  pieces: AsyncGenerator<Uint8Array>,
  logger: Logger,
  stalledMs = mostStalledMs,
): Promise<Answer> {
  // Begun, so that its return() releases what it holds also where no piece is ever taken.
  await pieces.next();
  return {
    status: 200,
    body: '',
    pieces,
    stream: (response) => {
      send(response, pieces, stalledMs).catch((error: unknown) => {
        logger.warn({ err: error }, 'an answer broke off, and so does its connection');
        response.destroy();
      });
    },
  };
}

/** The answer of JSON whose pieces are made as they are sent, but for what has 64 KiB at most. Else as listAnswer. */
export async function piecesAnswer(
  pieces: AsyncGenerator<Uint8Array>,
  { logger }: { logger: Logger },
): Promise<Answer> {
  const known: Uint8Array[] = [];
  let bytes = 0;
  while (bytes < wholeBytes) {
    const { done, value } = await readOrRefuse(pieces.next());
    if (done === true) return { status: 200, body: Buffer.concat(known) };
    bytes += value.length;
    known.push(value);
  }
  return streamedAnswer(withBegin(known, pieces), logger);
}

async function* withBegin(
  known: readonly Uint8Array[],
  rest: AsyncGenerator<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield Buffer.alloc(0);
    yield Buffer.concat(known);
    yield* rest;
  } finally {
    // What reads also ends where the answer does not.
    await rest.return(undefined);
  }
}

function joined(texts: readonly Uint8Array[]): Uint8Array[] {
  return texts.flatMap((text, index) => (index === 0 ? [text] : [comma, text]));
}

async function* piecesOf(
  known: readonly Uint8Array[],
  rest: AsyncIterator<Uint8Array>,
  clock: Clock,
): AsyncGenerator<Uint8Array> {
  try {
    yield Buffer.alloc(0);
    yield Buffer.concat([opening, ...joined(known)]);
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      yield comma;
      for (let at = 0; at < next.value.length; at += pieceBytes) {
        await nextPiece(clock);
        yield next.value.subarray(at, at + pieceBytes);
      }
    }
    yield closing;
  } finally {
    // The store's read ends also where the list does not.
    await rest.return?.();
  }
}

/** Writes the pieces, and ends the response. Rejects as reading them does. */
async function send(response: ServerResponse, pieces: AsyncIterable<Uint8Array>, stalledMs: number): Promise<void> {
  let goOn = (): void => undefined;
  const onClose = (): void => goOn();
  response.once('close', onClose);
  response.setTimeout(stalledMs, () => response.destroy());
  try {
    for await (const piece of pieces) {
      if (response.destroyed) return;
      await new Promise<void>((resolve) => {
        goOn = resolve;
        response.write(piece, () => resolve());
      });
    }
    response.end();
  } finally {
    response.off('close', onClose);
    response.setTimeout(0);
  }
}
