import { isImportName, maxImports as maxLearned } from '@gpuwhisk/common/entities/action-annotations';
import type { CallOutcome, ImportedModule, LoadTimes } from '../container-factory.js';
import { parseJson } from './call-outcome.js';

/** Largest report of an init that is read, bytes. */
const maxReportBytes = 16 * 1024;

/**
 * The outcome of an init, with what the runtime reports of it: times, each at most `seenMs`, the whole time; imports; and whether
 * the code has a function `after_restore`. The action can write this report.
 */
export function loadOutcome(payload: Buffer, seenMs: number): CallOutcome {
  if (payload.length > maxReportBytes) return { type: 'ok' };
  const told = (parseJson(payload.toString()) ?? {}) as Partial<
    Record<'importUs' | 'codeUs' | 'entryUs' | 'imports' | 'restores', unknown>
  >;
  const ms = (us: unknown): number | undefined =>
    typeof us === 'number' && us >= 0 ? Math.min(us / 1000, seenMs) : undefined;
  const [importMs, codeMs, entryMs] = [ms(told.importUs), ms(told.codeUs), ms(told.entryUs)];
  const loadTimes: LoadTimes = {
    ...(importMs !== undefined && { importMs }),
    ...(codeMs !== undefined && { codeMs }),
    ...(entryMs !== undefined && { entryMs }),
  };
  const imports = reportedImports(told.imports, ms);
  return {
    type: 'ok',
    ...(Object.keys(loadTimes).length > 0 && { loadTimes }),
    ...(imports.length > 0 && { imports }),
    ...(told.restores === true && { restores: true }),
  };
}

/** The entries of a report of imports that have the form of one, at most `maxLearned`. */
function reportedImports(told: unknown, ms: (us: unknown) => number | undefined): ImportedModule[] {
  if (!Array.isArray(told)) return [];
  return told.slice(0, maxLearned).flatMap((entry: unknown) => {
    const [name, us] = Array.isArray(entry) ? (entry as unknown[]) : [];
    const tookMs = ms(us);
    return isImportName(name) && tookMs !== undefined ? [{ name, ms: tookMs }] : [];
  });
}
