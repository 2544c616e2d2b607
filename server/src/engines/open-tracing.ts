import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import { traceMetrics } from '@gpuwhisk/common/metrics';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Tracer } from '@gpuwhisk/common/tracing';

/** Dependencies of openTracing. */
interface TracingParts {
  config: Pick<Config, 'tracing'>;
  /** OpenTelemetry's variables. */
  env: NodeJS.ProcessEnv;
  clock: Clock;
  logger: Logger;
  metrics: Pick<Metrics, 'registry'>;
  /** This process among those of the service, such as `controller0`. */
  process: string;
}

/** A tracer, and its end. */
interface OpenedTracing {
  tracer: Tracer;
  /** Exports what is left, for two seconds at most. */
  close(): Promise<void>;
}

/** How long the last spans may take at the end of the process, ms. */
const flushMs = 2000;
/** Interval in which failed exports are logged once, ms. */
const sameTroubleMs = 60_000;

/** Whether traces are exported: `tracing.url` is set, or OpenTelemetry's variables name a collector. */
export function isTraced({ tracing }: Pick<Config, 'tracing'>, env: NodeJS.ProcessEnv): boolean {
  if (tracing.url !== undefined) return true;
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none';
  const endpoint = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? env.OTEL_EXPORTER_OTLP_ENDPOINT ?? '';
  return !isOff && endpoint !== '';
}

/** Opens OpenTelemetry's tracer; undefined, and nothing of the SDK is loaded, if no traces are exported. */
export async function openTracing(parts: TracingParts): Promise<OpenedTracing | undefined> {
  const { config, env, clock, logger, metrics, process } = parts;
  if (!isTraced(config, env)) return undefined;
  const { openSdkTracer } = await import('./sdk-tracer.js');
  const exported = traceMetrics(metrics.registry);
  let loggedMs = -Infinity;
  const tracer = openSdkTracer({
    settings: config.tracing,
    process,
    onExport(spans, error) {
      exported(error === undefined ? 'exported' : 'failed', spans);
      const nowMs = clock.monotonicMs();
      if (error === undefined || nowMs - loggedMs < sameTroubleMs) return;
      loggedMs = nowMs;
      logger.warn({ spans, error }, 'spans could not be exported to the collector of traces and are dropped');
    },
  });
  return {
    tracer,
    async close() {
      const flushed = tracer.shutdown().catch((error: unknown) => {
        logger.warn({ error: String(error) }, 'the last spans could not be exported');
      });
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(flushMs, resolve);
        void flushed.then(() => {
          timer.cancel();
          resolve();
        });
      });
    },
  };
}
