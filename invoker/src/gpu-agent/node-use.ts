import { gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { Clock } from '@gpuwhisk/common/system/clock';

/** Most functions that are counted by name; further ones of a namespace count together, and beyond twice as many all do. */
const maxFunctions = 1000;
const others = '(others)';
/** Looks at the devices per report. */
const every = 5;

/** Dependencies of UseCounts. */
export interface UseCountsParts {
  invoker: string;
  state: Pick<ClusterState, 'setRow'>;
  clock: Clock;
  /** Market and price of the node, where the operator has set them. */
  node: Pick<NodeUse, 'market' | 'pricePerHour'>;
}

/** Counts the use of this node's GPUs by function since the start of its agent, and reports it for the costs. */
export class UseCounts {
  private readonly used = new Map<string, [namespace: string, action: string, gpuMs: number]>();
  private readonly startMs: number;
  private readonly start: string;
  private looks = 0;

  constructor(private readonly parts: UseCountsParts) {
    const { clock, invoker } = parts;
    this.startMs = clock.monotonicMs();
    this.start = `${invoker} ${clock.now()}`;
  }

  /** Adds a use of `gpuMs` of a whole GPU. */
  add(namespace: string, action: string, gpuMs: number): void {
    const key = this.keyOf(namespace, action);
    const known = this.used.get(key.join('\n')) ?? [...key, 0];
    known[2] += gpuMs;
    this.used.set(key.join('\n'), known);
  }

  /** Called at every look at the devices; reports at each fifth one. */
  async look(devices: number): Promise<void> {
    if (this.looks++ % every === 0) await this.tell(devices);
  }

  /** Reports the use. A report that fails is made up for by the next one. */
  async tell(devices: number): Promise<void> {
    const { invoker, state, clock, node } = this.parts;
    const use: NodeUse = {
      ...{ start: this.start, at: clock.now(), upMs: Math.round(clock.monotonicMs() - this.startMs), devices },
      ...(node.market !== undefined && { market: node.market }),
      ...(node.pricePerHour !== undefined && { pricePerHour: node.pricePerHour }),
      used: Array.from(
        this.used.values(),
        ([namespace, action, gpuMs]) => [namespace, action, Math.round(gpuMs)] as const,
      ),
    };
    try {
      await state.setRow(gpuUseTable, invoker, use as unknown as JsonValue);
    } catch {
      // The cluster's state is out of reach, which its client logs. The counts stay.
    }
  }

  private keyOf(namespace: string, action: string): [string, string] {
    const { size } = this.used;
    if (size < maxFunctions || this.used.has(`${namespace}\n${action}`)) return [namespace, action];
    if (size < 2 * maxFunctions || this.used.has(`${namespace}\n${others}`)) return [namespace, others];
    return [others, others];
  }
}
