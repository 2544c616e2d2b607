const two = (number: number): string => String(number).padStart(2, '0');

/** `YYYY-MM-DD hh:mm:ss` in the local time zone. */
export function formatLocalTime(timeMs: number): string {
  const time = new Date(timeMs);
  const date = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${date} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

/** A length of time the way Go writes it: `0s`, `12ms`, `1.234s`, `1m5.5s`, `2h0m0s`. */
export function formatDuration(durationMs: number): string {
  const length = Math.abs(durationMs);
  const sign = durationMs < 0 ? '-' : '';
  if (length === 0) return '0s';
  if (length < 1000) return `${sign}${length}ms`;
  const hours = Math.floor(length / 3_600_000);
  const minutes = Math.floor(length / 60_000) % 60;
  const seconds = `${(length % 60_000) / 1000}s`;
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}` : `${sign}${seconds}`;
}

/** Cuts the middle out of a text longer than `most`, leaving `...` there. */
export function shorten(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half + (most % 2))}...${text.slice(text.length - half + 3)}`;
}
