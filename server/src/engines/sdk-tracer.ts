// The tracer of OpenTelemetry's SDK. open-tracing.ts imports this file only where traces are exported.
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, createTraceState, trace } from '@opentelemetry/api';
import type { Attributes, Context, SpanContext } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import type { SpanExporter } from '@opentelemetry/sdk-trace-base';
import type { Config } from '@gpuwhisk/common/config';
import type { Span, SpanStart, TraceAttributes, TraceContext, Tracer } from '@gpuwhisk/common/tracing';

/** Dependencies of openSdkTracer. */
export interface SdkTracerOptions {
  settings: Config['tracing'];
  /** This process among those of the service, such as `controller0`. */
  process: string;
  /** Called when the collector has taken spans (without an error) or has not. */
  onExport(spans: number, error: string | undefined): void;
}

/** A tracer that exports in the background. */
export interface SdkTracer extends Tracer {
  /** Exports what is left; resolves when that is done or has failed. */
  shutdown(): Promise<void>;
}

const kinds = {
  server: SpanKind.SERVER,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
} as const;

/** Opens a tracer. Settings that are absent are read from OpenTelemetry's environment variables. */
export function openSdkTracer({ settings, process, onExport }: SdkTracerOptions): SdkTracer {
  const { url, headers, sampleRatio, serviceName } = settings;
  const exporter = new OTLPTraceExporter({ ...(url !== undefined && { url }), headers });
  const counted: SpanExporter = {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        onExport(spans.length, result.code === 0 ? undefined : (result.error?.message ?? 'no answer'));
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
  };
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'gpuwhisk' }))
      .merge(detectResources({ detectors: [envDetector] }))
      .merge(
        resourceFromAttributes({
          'service.instance.id': process,
          ...(serviceName !== undefined && { 'service.name': serviceName }),
        }),
      ),
    // The processor keeps 2,048 spans, drops further ones and exports one batch at a time, each with a time limit.
    spanProcessors: [new BatchSpanProcessor(counted)],
    ...(sampleRatio !== undefined && {
      sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    }),
  });
  const tracer = provider.getTracer('gpuwhisk');
  return {
    start(name: string, { parent, kind = 'internal', startMs, attributes = {} }: SpanStart = {}): Span {
      const begun = tracer.startSpan(
        name,
        {
          kind: kinds[kind],
          attributes: attributes as Attributes,
          ...(startMs !== undefined && { startTime: startMs }),
        },
        parent === undefined ? ROOT_CONTEXT : contextOf(parent),
      );
      return {
        context: writtenContext(begun.spanContext()),
        isRecorded: begun.isRecording(),
        set: (more: TraceAttributes) => void begun.setAttributes(more as Attributes),
        end(error?: string) {
          if (error !== undefined) begun.setStatus({ code: SpanStatusCode.ERROR, message: error });
          begun.end();
        },
      };
    },
    shutdown: () => provider.shutdown(),
  };
}

function writtenContext({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  const tracestate = traceState?.serialize() ?? '';
  return tracestate === '' ? { traceparent } : { traceparent, tracestate };
}

/** The SDK's form of a context that readTraceContext or a span gave. */
function contextOf({ traceparent, tracestate }: TraceContext): Context {
  const [, traceId = '', spanId = '', flags = ''] = traceparent.split('-');
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  });
}
