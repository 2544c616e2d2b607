/** What Node writes with --cpu-prof, as far as it is read here. Times are µs. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
  }[];
  samples: number[];
  timeDeltas: number[];
}

/** A function and the time spent in itself, callees excluded. */
export interface SelfTime {
  name: string;
  /** `file:line`, empty for V8's own entries such as `(idle)`. */
  place: string;
  ms: number;
}

/** Self time per function, longest first. */
export function selfTimes(profile: CpuProfile): SelfTime[] {
  const byNode = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    byNode.set(id, (byNode.get(id) ?? 0) + (profile.timeDeltas[index] ?? 0) / 1000);
  });
  const byFunction = new Map<string, SelfTime>();
  for (const { id, callFrame } of profile.nodes) {
    const ms = byNode.get(id) ?? 0;
    const { functionName, url, lineNumber } = callFrame;
    const name = functionName || '(anonymous)';
    const place = url === '' ? '' : `${url}:${lineNumber + 1}`;
    const entry = byFunction.get(`${name} ${place}`) ?? { name, place, ms: 0 };
    entry.ms += ms;
    byFunction.set(`${name} ${place}`, entry);
  }
  return [...byFunction.values()].sort((a, b) => b.ms - a.ms);
}
