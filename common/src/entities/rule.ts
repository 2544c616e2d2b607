import type { EntityReference } from './entity-reference.js';
import type { Parameter } from './parameters.js';

/** A rule, decoded: a fire of the trigger runs the action. Whether it does stands in the trigger (RuleLink). */
export interface WhiskRule {
  namespace: string;
  name: string;
  trigger: EntityReference;
  action: EntityReference;
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** Epoch ms of the last write. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}
