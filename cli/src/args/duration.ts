import { usageError } from '../errors.js';

const unitMs: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A length of time such as `90s`, `12h` or `1d12h`, in ms; `0` needs no unit. @throws WskError with the flag's name */
export function readDuration(text: string, flag: string): number {
  if (text === '0') return 0;
  const parts = [...text.matchAll(/(\d+)(ms|[smhd])/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) {
    throw usageError(`${flag} must be a length of time such as 90s, 12h or 3d; found '${text}'`);
  }
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (unitMs[unit] ?? 0), 0);
}
