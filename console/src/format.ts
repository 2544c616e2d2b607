// Figures as people read them.

/** `0.25` as `25 %`. */
export function percent(fraction: number): string {
  return `${Math.round(fraction * 100)} %`;
}

/** MiB as MiB or GiB. */
export function memory(mib: number): string {
  return mib < 1024 ? `${Math.round(mib)} MiB` : `${(mib / 1024).toFixed(mib < 10_240 ? 1 : 0)} GiB`;
}

/** A length of time, ms, in the largest unit that leaves a whole number. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** `/namespace/package/action` without its namespace. */
export function shortName(action: string): string {
  return action.split('/').slice(2).join('/');
}

/** How long a time, epoch ms, lies back, by the controller's clock: `3 min 2 s ago`. */
export function ago(ms: number, nowMs: number): string {
  const passedMs = nowMs - ms;
  if (passedMs < 1000) return 'now';
  return passedMs < 48 * 3_600_000 ? `${duration(passedMs)} ago` : new Date(ms).toLocaleDateString();
}

const timeOfDay = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium', hourCycle: 'h23' });

/** A time, epoch ms, as a time of day of the browser's zone. */
export function clockTime(epochMs: number): string {
  return timeOfDay.format(epochMs);
}

/** An amount of the operator's currency. */
export function amount(cost: number): string {
  return cost.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: cost < 1 ? 4 : 2 });
}
