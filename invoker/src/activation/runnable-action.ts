import type { ActionLimits } from '@gpuwhisk/common/entities/action';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { Warm } from '@gpuwhisk/common/entities/action-annotations';

/** An action's code. */
export interface ActionCode {
  /** Source text, or base64 when binary. */
  code: string;
  binary: boolean;
  /** SHA-256 of the text or the bytes as they were registered, hexadecimal; absent in documents of other makers. */
  digest?: string;
}

/** One revision of an action, ready to be run: all but its code, which only a cold container needs. */
export interface RunnableAction {
  /** `ns` or `ns/pkg`. */
  namespace: string;
  name: string;
  version: string;
  revision: string;
  kind: string;
  /** What runs it: its kind, or `blackbox:` and the image (see kindOfImage). */
  runtime: string;
  main: string;
  limits: ActionLimits;
  annotations: readonly Parameter[];
  /** Annotation `requirements`, sorted; empty for none. */
  requirements: readonly string[];
  /** Annotation `warm`. */
  warm: Warm;
  /** Rejects if the store cannot give it. */
  code(): Promise<ActionCode>;
}

/** `/ns/pkg/name`. */
export function fullyQualifiedName(action: Pick<RunnableAction, 'namespace' | 'name'>): string {
  return `/${action.namespace}/${action.name}`;
}
