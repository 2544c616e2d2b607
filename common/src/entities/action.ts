import type { Parameter } from './parameters.js';

/** An action's limits as OpenWhisk stores them: timeout ms, memory MB (MiB), logs MB (MiB). */
export interface ActionLimits {
  timeout: number;
  memory: number;
  logs: number;
  concurrency: number;
  instances?: number;
}

/** Where attached code lies; `mem:` names carry the bytes themselves (base64). */
export interface CodeAttachment {
  attachmentName: string;
  attachmentType: string;
  length?: number;
  digest?: string;
}

/**
 * Code for a runtime kind. `code` is the source text, or base64 of an archive when `binary`; or where that lies
 * (readActionCode in action-codec.ts fetches it).
 */
export interface CodeExec {
  kind: string;
  code: string | CodeAttachment;
  binary: boolean;
  main?: string;
}

/** A container image, with optional code that is given to it at init. */
export interface BlackboxExec {
  kind: 'blackbox';
  image: string;
  binary: boolean;
  code?: string | CodeAttachment;
  main?: string;
}

/** A chain of actions, each a fully qualified name with a leading slash. */
export interface SequenceExec {
  kind: 'sequence';
  components: string[];
}

/** What an action runs. */
export type Exec = CodeExec | BlackboxExec | SequenceExec;

/** An action, decoded. `namespace` is `ns`, or `ns/pkg` for a packaged action. */
export interface WhiskAction {
  namespace: string;
  name: string;
  exec: Exec;
  parameters: Parameter[];
  limits: ActionLimits;
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** Epoch ms of the last write. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}
