import type { JsonValue } from '@gpuwhisk/common/json';
import { isObject, objectsOf, textOf } from './values.js';

/** The kinds of actions that the target runs. */
export class TargetKinds {
  /** Undefined: the target does not say. */
  private readonly accepted: Map<string, boolean> | undefined;

  /** `info` is what the target answers about itself at `/`. */
  constructor(info: JsonValue) {
    if (!isObject(info) || !isObject(info.runtimes)) return;
    const entries = Object.values(info.runtimes).flatMap(objectsOf);
    this.accepted = new Map(entries.map(({ kind, deprecated }) => [textOf(kind), deprecated !== true]));
  }

  /** Why an action of this kind cannot be carried; undefined if it can, or nobody knows. */
  problem(kind: string): string | undefined {
    if (kind === 'sequence' || kind === 'blackbox' || this.accepted === undefined) return undefined;
    const remedy = `(--kind ${kind}=OTHER carries it as another kind)`;
    const accepted = this.accepted.get(kind);
    if (accepted === undefined) return `the target has no runtime for kind '${kind}' ${remedy}`;
    return accepted ? undefined : `the target no longer accepts kind '${kind}' ${remedy}`;
  }
}
