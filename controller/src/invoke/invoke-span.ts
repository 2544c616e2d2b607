import type { TraceContext, Tracer } from '@gpuwhisk/common/tracing';
import type { InvokeOutcome, InvokeRequest } from './invoke-service.js';

/**
 * Runs `invoke` in a span `invoke`, with the context for the spans below. The span ends when the caller of the invocation gets
 * its answer; `invoke`'s error is passed on.
 */
export async function inInvokeSpan(
  tracer: Tracer,
  { trace, action, identity, transactionId, blocking }: InvokeRequest,
  activationId: string,
  invoke: (context: TraceContext) => Promise<InvokeOutcome>,
): Promise<InvokeOutcome> {
  const span = tracer.start('invoke', {
    parent: trace,
    kind: 'producer',
    attributes: {
      'faas.name': `/${action.namespace}/${action.name}`,
      'faas.invocation_id': activationId,
      'gpuwhisk.transaction_id': transactionId,
      'gpuwhisk.namespace': identity.namespace.name,
      'gpuwhisk.blocking': blocking,
    },
  });
  try {
    const outcome = await invoke(span.context);
    span.end();
    return outcome;
  } catch (error) {
    span.end((error as Error).message);
    throw error;
  }
}
