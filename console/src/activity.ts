// What the cluster has run in the last minutes, as charts show it.

/** Ended activations of a second, as GET /api/v1/activity answers them. */
export interface ActivitySecond {
  /** Begin of the second, epoch ms. */
  at: number;
  activations: number;
  failed: number;
  cold: number;
  prewarmed: number;
  injected: number;
  warm: number;
  withSlo: number;
  metSlo: number;
}

/** Seconds that are drawn as one point. */
const pointS = 5;

/** Rates a second and attainment of SLOs, by points of time. */
export interface ActivityLines {
  /** Begins of the points, epoch ms. */
  times: number[];
  rates: Record<'activations' | 'failed' | 'cold' | 'prewarmed' | 'injected' | 'warm', number[]>;
  /** Percent of the activations with an SLO that met it; null where there was none. */
  attained: (number | null)[];
}

/** The lines of whole points of five seconds. */
export function activityLines(seconds: readonly ActivitySecond[]): ActivityLines {
  const points = new Map<number, ActivitySecond[]>();
  for (const second of seconds) {
    const at = Math.floor(second.at / 1000 / pointS) * pointS * 1000;
    const there = points.get(at);
    if (there === undefined) points.set(at, [second]);
    else there.push(second);
  }
  const whole = [...points].filter(([, there]) => there.length === pointS);
  const rate = (field: keyof ActivitySecond): number[] => whole.map(([, there]) => sumOf(there, field) / pointS);
  return {
    times: whole.map(([at]) => at),
    rates: {
      activations: rate('activations'),
      failed: rate('failed'),
      cold: rate('cold'),
      prewarmed: rate('prewarmed'),
      injected: rate('injected'),
      warm: rate('warm'),
    },
    attained: whole.map(([, there]) => attainment(there)),
  };
}

/** Percent of the activations with an SLO that met it; null where there was none. */
export function attainment(seconds: readonly ActivitySecond[]): number | null {
  const withSlo = sumOf(seconds, 'withSlo');
  return withSlo === 0 ? null : (100 * sumOf(seconds, 'metSlo')) / withSlo;
}

/** The sum of a field. */
export function sumOf(seconds: readonly ActivitySecond[], field: keyof ActivitySecond): number {
  return seconds.reduce((sum, one) => sum + one[field], 0);
}
