import type { Known } from '../live.js';

/** Tells why a part of the page cannot be shown; nothing where it can. */
export function Problem({ of, what }: { of: Known<unknown>; what: string }) {
  if (of.problem === undefined) return null;
  return (
    <p class="problem" role="alert">
      {what}: {of.problem.error}
    </p>
  );
}
