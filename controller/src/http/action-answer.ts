// Answers with an action's code, which may be large.
import { actionToApi } from '@gpuwhisk/common/entities/action';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { isReference, isSequence } from '@gpuwhisk/common/entities/exec-codec';
import { jsonWithCode, mostSmallBytes } from '@gpuwhisk/common/entities/large-code';
import { fair, TooMuchWaits } from '@gpuwhisk/common/concurrency';
import { tooManyInFlight } from '@gpuwhisk/common/errors';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { requestTimeoutMs } from '@gpuwhisk/common/system/network';
import type { Answer } from './answer.js';
import { jsonAnswer } from './answer.js';
import { streamedAnswer } from './list-answer.js';

/** Large codes that are received or sent at once; of a namespace one fewer. Each takes as much memory as its bytes, a PUT twice. */
const mostAtOnce = 8;
/** Further ones of a namespace that wait. */
const mostWaiting = 64;
/** A client that takes longer for large code than another has to send it is cut off: two slow ones of two namespaces have all places. */
const mostSendingMs = requestTimeoutMs;

/** Ends the use of a place for large code. May be called again. */
export type Release = () => void;

/** Places for large code in memory, which namespaces have in turn. */
export class LargeCodes {
  private readonly inTurn = fair(mostAtOnce, mostWaiting);

  constructor(
    private readonly clock: Clock,
    private readonly logger: Logger,
  ) {}

  /** Resolves with the release of a place, when it is the namespace's turn. Throws ApiError (429). */
  begin(namespace: string): Promise<Release> {
    return new Promise((resolve, reject) => {
      this.inTurn(namespace, () => new Promise<void>((release) => resolve(release))).catch((error: unknown) => {
        const isFull = error instanceof TooMuchWaits;
        reject(isFull ? tooManyInFlight(mostAtOnce + mostWaiting, mostAtOnce + mostWaiting - 1) : (error as Error));
      });
    });
  }

  /** Answers with what `work` resolves with, and holds a place until the answer is sent if the code may be large. */
  async answer(
    namespace: string,
    mayBeLarge: boolean,
    work: () => Promise<WhiskAction>,
    path: 'action' | 'list' = 'action',
  ): Promise<Answer> {
    const release = mayBeLarge ? await this.begin(namespace) : undefined;
    try {
      return await this.answerWith(await work(), path, release);
    } catch (error) {
      release?.();
      throw error;
    }
  }

  private async answerWith(action: WhiskAction, path: 'action' | 'list', release?: Release): Promise<Answer> {
    const { exec } = action;
    const code = isSequence(exec) ? undefined : exec.code;
    const shown = actionToApi(action, { code: true });
    if (!(code instanceof Uint8Array)) {
      release?.();
      return jsonAnswer(path === 'list' ? [shown] : shown);
    }
    const binary = !isSequence(exec) && exec.binary;
    const body = jsonWithCode(this.clock, shown, ['exec', 'code'], { code, binary });
    return streamedAnswer(this.sent(body, path, release), this.logger);
  }

  private async *sent(
    body: AsyncIterable<Buffer>,
    path: 'action' | 'list',
    release?: Release,
  ): AsyncGenerator<Uint8Array> {
    const untilMs = this.clock.monotonicMs() + mostSendingMs;
    try {
      yield Buffer.alloc(0);
      if (path === 'list') yield Buffer.from('[');
      for await (const piece of body) {
        if (this.clock.monotonicMs() > untilMs) throw new Error(`the client has not taken it in ${mostSendingMs} ms`);
        yield piece;
      }
      if (path === 'list') yield Buffer.from(']');
    } finally {
      release?.();
    }
  }
}

/** Whether a stored action's code is large. */
export function hasLargeCode({ exec }: WhiskAction): boolean {
  const code = isSequence(exec) ? undefined : exec.code;
  return isReference(code) && (code.length ?? Infinity) > mostSmallBytes;
}
