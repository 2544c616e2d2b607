import type { PlaceOf, SourcePlace } from './source-places.js';

/** The fields of a profile of node --cpu-prof that are read here. Times are µs. */
export interface CpuProfile {
  nodes: {
    id: number;
    callFrame: { functionName: string; url: string; lineNumber: number; columnNumber: number };
    children?: number[];
  }[];
  samples: number[];
  timeDeltas: number[];
  /** Start of the profile by the system's monotonic clock, which is also that of process.hrtime. */
  startTime: number;
}

/** A stretch of time by the system's monotonic clock, µs. */
export interface TimeWindow {
  fromUs: number;
  toUs: number;
}

/** A function on the stack of samples; code of V8 has no file, and line 0. */
export interface StackFrame extends SourcePlace {
  name: string;
}

/** A function with the samples below it: one node of the tree of stacks. */
export interface StackNode {
  frame: StackFrame;
  /** Time of samples in the function itself, callees excluded, µs. */
  selfUs: number;
  children: StackNode[];
}

/** The tree of stacks of the samples in `window`. Throws Error for an empty profile. */
export function stackTree(profile: CpuProfile, window: TimeWindow, placeOf: PlaceOf): StackNode {
  const weights = weightsIn(profile, window);
  const nodes = new Map(
    profile.nodes.map(({ id, callFrame }): [number, StackNode] => [
      id,
      { frame: frameOf(callFrame, placeOf), selfUs: weights.get(id) ?? 0, children: [] },
    ]),
  );
  for (const { id, children = [] } of profile.nodes) {
    for (const child of children) {
      const node = nodes.get(child);
      if (node !== undefined) nodes.get(id)?.children.push(node);
    }
  }
  const [first] = nodes.values();
  if (first === undefined) throw new Error('the profile has no samples');
  return first;
}

function weightsIn({ samples, timeDeltas, startTime }: CpuProfile, { fromUs, toUs }: TimeWindow): Map<number, number> {
  const weights = new Map<number, number>();
  let atUs = startTime;
  samples.forEach((id, index) => {
    const deltaUs = timeDeltas[index] ?? 0;
    atUs += deltaUs;
    if (atUs > fromUs && atUs <= toUs) weights.set(id, (weights.get(id) ?? 0) + deltaUs);
  });
  return weights;
}

function frameOf(
  { functionName, url, lineNumber, columnNumber }: CpuProfile['nodes'][number]['callFrame'],
  placeOf: PlaceOf,
): StackFrame {
  return { name: functionName || '(anonymous)', ...placeOf(url, lineNumber, columnNumber) };
}

/** Time of a node and of all below it, µs. */
export function totalUs({ selfUs, children }: StackNode): number {
  return children.reduce((sum, child) => sum + totalUs(child), selfUs);
}

/** A function and the time spent in itself, callees excluded. */
export interface SelfTime {
  name: string;
  /** `file:line`; for code of Node or V8, of the nearest caller in a file of the repository, or empty if there is none. */
  place: string;
  ms: number;
}

/** Self time per function (Node's and V8's own: per function and caller), longest first. */
export function selfTimes(tree: StackNode): SelfTime[] {
  const byFunction = new Map<string, SelfTime>();
  const visit = ({ frame, selfUs, children }: StackNode, caller: string): void => {
    const { name, file, line } = frame;
    const isOwn = file !== '' && !file.startsWith('node:');
    const place = isOwn ? `${file}:${line}` : caller && `from ${caller}`;
    const key = `${name} ${place}`;
    const entry = byFunction.get(key) ?? { name, place, ms: 0 };
    entry.ms += selfUs / 1000;
    byFunction.set(key, entry);
    for (const child of children) visit(child, isOwn ? `${name} ${place}` : caller);
  };
  visit(tree, '');
  return [...byFunction.values()].sort((a, b) => b.ms - a.ms);
}
