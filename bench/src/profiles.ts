/** What Node writes with --cpu-prof, as far as it is read here. Times are µs. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
}

/** A function and the time spent in itself, callees excluded. */
export interface SelfTime {
  name: string;
  /** `file:line`; of what Node or V8 brings, the nearest caller that is a file; empty if there is none. */
  place: string;
  ms: number;
}

/** Self time per function (Node's and V8's own: per function and caller), longest first. */
export function selfTimes(profile: CpuProfile): SelfTime[] {
  const byNode = new Map<number, number>();
  profile.samples.forEach((id, index) => {
    byNode.set(id, (byNode.get(id) ?? 0) + (profile.timeDeltas[index] ?? 0) / 1000);
  });
  const places = placesOf(profile);
  const byFunction = new Map<string, SelfTime>();
  for (const { id, callFrame } of profile.nodes) {
    const name = callFrame.functionName || '(anonymous)';
    const place = places.get(id) ?? '';
    const entry = byFunction.get(`${name} ${place}`) ?? { name, place, ms: 0 };
    entry.ms += byNode.get(id) ?? 0;
    byFunction.set(`${name} ${place}`, entry);
  }
  return [...byFunction.values()].sort((a, b) => b.ms - a.ms);
}

/** Parents come before their children in a profile, so one pass hands the nearest file down. */
function placesOf(profile: CpuProfile): Map<number, string> {
  const callers = new Map<number, string>();
  const places = new Map<number, string>();
  for (const { id, callFrame, children } of profile.nodes) {
    const { functionName, url, lineNumber } = callFrame;
    const isFile = url.startsWith('file:');
    const caller = callers.get(id) ?? '';
    const own = `${url}:${lineNumber + 1}`;
    places.set(id, isFile ? own : caller && `from ${caller}`);
    for (const child of children ?? []) callers.set(child, isFile ? `${functionName || '(anonymous)'} ${own}` : caller);
  }
  return places;
}
