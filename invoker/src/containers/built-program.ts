// The answer of a builder: JSON with a program of tens of MiB in base64, which is read in pieces.
import { nextPiece } from '@gpuwhisk/common/system/pieces';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** A program, and the other fields of the builder's answer. */
export interface BuiltProgram {
  program: Buffer;
  rest: JsonObject;
}

const beginning = /^\{\s*"program"\s*:\s*"/;
const mostBeginningBytes = 64;
/** Characters that are decoded at once, under a millisecond of work. Four of them are three bytes. */
const pieceChars = 256 * 1024;
/** Bytes of the other fields, at most. */
const mostRestBytes = 1024 * 1024;
const quote = 0x22;

/**
 * The program in an answer, whose first field it is; undefined if the answer is no such JSON. Other work of the thread is done
 * between pieces.
 */
export async function readProgram(clock: Clock, answer: Buffer): Promise<BuiltProgram | undefined> {
  const [head] = beginning.exec(answer.toString('latin1', 0, mostBeginningBytes)) ?? [];
  if (head === undefined) return undefined;
  const program = Buffer.allocUnsafe(Math.ceil((answer.length * 3) / 4));
  let written = 0;
  for (let at = head.length; at < answer.length; at += pieceChars) {
    const piece = answer.subarray(at, at + pieceChars);
    const end = piece.indexOf(quote);
    written += program.write(piece.toString('latin1', 0, end < 0 ? undefined : end), written, 'base64');
    if (end >= 0) {
      const rest = restOf(answer.subarray(at + end + 1));
      return rest && { program: program.subarray(0, written), rest };
    }
    await nextPiece(clock);
  }
  return undefined;
}

/** The fields behind the first one; undefined if they are no JSON, or too long. */
function restOf(text: Buffer): JsonObject | undefined {
  if (text.length > mostRestBytes) return undefined;
  const behind = text.toString().trim();
  if (behind === '}') return {};
  if (!behind.startsWith(',')) return undefined;
  try {
    const rest: unknown = JSON.parse(`{${behind.slice(1)}`);
    return isJsonObject(rest) ? rest : undefined;
  } catch {
    // The caller reports an answer that is no JSON.
    return undefined;
  }
}
