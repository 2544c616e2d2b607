// What the platform asks of a tracer. The implementation is a library's, which is loaded only where traces are exported.
import type { Placement } from './gpu.js';

/** The context of a span in the words of W3C's Trace Context. Messages carry it in `traceContext`. */
export interface TraceContext {
  /** `00-<trace id>-<span id>-<flags>`, in lower-case hexadecimal. */
  traceparent: string;
  tracestate?: string;
}

/** Attributes of a span. Names follow OpenTelemetry's conventions where these have one, else they begin with `gpuwhisk.`. */
export type TraceAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** How a span begins. */
export interface SpanStart {
  /** The span above it; absent: it begins a trace. */
  parent?: TraceContext | undefined;
  /** Default: internal. */
  kind?: 'server' | 'producer' | 'consumer' | 'internal';
  /** Epoch ms; absent: now. */
  startMs?: number;
  attributes?: TraceAttributes;
}

/** A part of a trace that has begun. */
export interface Span {
  readonly context: TraceContext;
  /** False if sampling leaves the span out: its attributes need not be computed. */
  readonly isRecorded: boolean;
  set(attributes: TraceAttributes): void;
  /** Ends the span now. `error`: it failed, and why. */
  end(error?: string): void;
}

/** Begins spans. Never throws and never waits: spans that cannot be exported are dropped. */
export interface Tracer {
  start(name: string, start?: SpanStart): Span;
}

const traceparent = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Longest tracestate that is passed on, characters, which is what W3C's Trace Context asks for at least. */
const maxTracestate = 512;

/** The context in a request's headers or a message's `traceContext`; undefined if there is none or it is malformed. */
export function readTraceContext(fields: Readonly<Record<string, unknown>> | undefined): TraceContext | undefined {
  const parent = fields?.traceparent;
  if (typeof parent !== 'string' || !traceparent.test(parent)) return undefined;
  const state = fields?.tracestate;
  const isKept = typeof state === 'string' && state !== '' && state.length <= maxTracestate;
  return isKept ? { traceparent: parent, tracestate: state } : { traceparent: parent };
}

/** The attributes of a place on GPUs. */
export function placementAttributes({ invoker, devices, slice, share, predicted }: Placement): TraceAttributes {
  return {
    'gpuwhisk.invoker': invoker,
    'gpuwhisk.gpu.devices': devices,
    ...(slice !== undefined && { 'gpuwhisk.gpu.slice': slice }),
    'gpuwhisk.gpu.share': share.shareClass / 100,
    'gpuwhisk.gpu.memory_mib': share.memoryMiB,
    ...(predicted !== undefined && { 'gpuwhisk.gpu.predicted_ms': Math.round(predicted.runMs) }),
  };
}
