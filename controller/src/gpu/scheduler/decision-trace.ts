import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { placementAttributes, readTraceContext } from '@gpuwhisk/common/tracing';
import type { Tracer } from '@gpuwhisk/common/tracing';

/**
 * Adds a decision to the trace of its activation: a span `gpu decision` from the acceptance to the decision, with the place and
 * the alternatives as attributes. An activation without a trace gets none.
 */
export function traceDecision(
  tracer: Tracer,
  { transid: [, acceptedMs], traceContext }: ActivationMessage,
  { at, activationId, action, policy, placement, reason, rejected }: DecisionRecord,
): void {
  const parent = readTraceContext(traceContext);
  if (parent === undefined) return;
  // The activation may have been accepted by another machine's clock.
  const span = tracer.start('gpu decision', { parent, startMs: Math.min(acceptedMs, at) });
  if (span.isRecorded) {
    span.set({
      'faas.name': action,
      'faas.invocation_id': activationId,
      'gpuwhisk.policy': policy,
      'gpuwhisk.decision.reason': reason,
      'gpuwhisk.decision.rejected': rejected.map(({ what, reason: why }) => `${what}: ${why}`),
      ...(placement && placementAttributes(placement)),
    });
  }
  span.end();
}
