import { ConfigError } from '@gpuwhisk/common/config';
import type { RuntimeManifest, StemCell } from '@gpuwhisk/common/runtimes';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import type { StemCellConfig } from '@gpuwhisk/invoker/pool/stem-cells';

const unitMs: Record<string, number> = { millisecond: 1, second: 1000, minute: 60_000, hour: 3_600_000 };

/** `256 MB` → 256. Throws ConfigError. */
function memoryMiB(text: string): number {
  const match = /^(\d+) *(MB|GB)$/i.exec(text);
  if (match === null) throw new ConfigError(`runtimes.json: '${text}' is no memory size such as '256 MB'`);
  return Number(match[1]) * (match[2]?.toUpperCase() === 'GB' ? 1024 : 1);
}

/** `2 minutes` → 120000. Throws ConfigError. */
function durationMs(text: string): number {
  const match = /^(\d+) *([a-z]+?)s?$/i.exec(text);
  const unit = unitMs[match?.[2]?.toLowerCase() ?? ''];
  if (match === null || unit === undefined)
    throw new ConfigError(`runtimes.json: '${text}' is no duration such as '2 minutes'`);
  return Number(match[1]) * unit;
}

function reactiveConfig(reactive: NonNullable<StemCell['reactive']>): NonNullable<StemCellConfig['reactive']> {
  const { minCount, maxCount, ttl, threshold, increment } = reactive;
  return { minCount, maxCount, ttlMs: durationMs(ttl), threshold, increment };
}

/** When the stem cells of these families begin, ms: the start itself is over by then. */
const startAfterMs: Record<string, number> = { native: 2000, java: 8000 };

/**
 * The stem cells that a manifest asks for. `prepares`: also of runtimes that take long to ready for the first time (Java's
 * is compiled), ahead of their first use. Throws ConfigError for a size or duration that cannot be read.
 */
export function stemCellConfigs(manifest: RuntimeManifest, prepares: boolean): StemCellConfig[] {
  const families = Object.entries(manifest.runtimes).filter(([family]) => prepares || family !== 'java');
  return families.flatMap(([family, entries]) =>
    entries.flatMap((entry) =>
      entry.stemCells.map((cell) => ({
        spec: bareSpec(entry.kind, memoryMiB(cell.memory)),
        initialCount: cell.initialCount,
        startAfterMs: startAfterMs[family] ?? 0,
        ...(cell.reactive !== undefined && { reactive: reactiveConfig(cell.reactive) }),
      })),
    ),
  );
}
