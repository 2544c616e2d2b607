import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { activationStatusWords } from '@gpuwhisk/common/entities/activation';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { placementAttributes, readTraceContext } from '@gpuwhisk/common/tracing';
import type { Span, TraceContext, Tracer } from '@gpuwhisk/common/tracing';
import { fullyQualifiedName } from './action-loader.js';
import type { RunnableAction } from './action-loader.js';

/**
 * The spans of an activation at its invoker: `bus` from the send of its message, and `activation` with the parts `container
 * wait`, `init` and `run`, one after the other.
 */
export class ActivationTrace {
  private readonly whole: Span;
  private part: Span;

  /** `invoker` is the topic that the message came from, `nowMs` (epoch) when. */
  constructor(
    private readonly tracer: Tracer,
    message: ActivationMessage,
    action: RunnableAction,
    { invoker, nowMs }: { invoker: string; nowMs: number },
  ) {
    const { gpu, transid, traceContext, activationId } = message;
    const parent = readTraceContext(traceContext);
    // Clocks of two machines differ.
    const startMs = Math.min(gpu?.at ?? transid[1], nowMs);
    const attributes = { 'messaging.destination.name': invoker };
    tracer.start('bus', { parent, kind: 'consumer', startMs, attributes }).end();
    this.whole = tracer.start('activation', {
      parent,
      attributes: {
        'faas.name': fullyQualifiedName(action),
        'faas.invocation_id': activationId,
        'gpuwhisk.transaction_id': transid[0],
        'gpuwhisk.kind': action.kind,
        'gpuwhisk.invoker': invoker,
      },
    });
    if (gpu !== undefined && this.whole.isRecorded) this.whole.set(placementAttributes(gpu));
    this.part = this.partOf('container wait');
  }

  private partOf(name: string): Span {
    return this.tracer.start(name, { parent: this.whole.context });
  }

  private next(name: string): void {
    this.part.end();
    this.part = this.partOf(name);
  }

  /** The activation waits for another container. */
  waiting(): void {
    this.next('container wait');
  }

  /** A container loads the code. */
  loading(): void {
    this.next('init');
  }

  /** The run begins; the context is for the function. */
  running(): TraceContext {
    this.next('run');
    return this.part.context;
  }

  /** The controller decides again about the activation. */
  gaveBack(reason: string): void {
    this.part.end(reason);
    this.whole.end(reason);
  }

  /** The activation has ended. `start`: state of the container that it found; absent if it got none. */
  ended(statusCode: WhiskActivation['response']['statusCode'], start: string | undefined): void {
    const status = activationStatusWords[statusCode];
    const error = statusCode === 0 ? undefined : status;
    this.part.end(error);
    this.whole.set({
      'gpuwhisk.status': status,
      ...(start !== undefined && { 'gpuwhisk.start': start, 'faas.coldstart': start === 'cold' }),
    });
    this.whole.end(error);
  }
}
