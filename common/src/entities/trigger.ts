import type { JsonObject } from '../json.js';
import type { EntityReference } from './entity-reference.js';
import type { Parameter } from './parameters.js';

/** Whether a rule takes part in the fires of its trigger. */
export type RuleStatus = 'active' | 'inactive';

/** A rule as its trigger knows it: what it runs, and whether it does. */
export interface RuleLink {
  action: EntityReference;
  status: RuleStatus;
  /**
   * There while a write changes the rule's action: the revision of the rule's document that is being replaced. The
   * document then tells which action it is.
   */
  replacing?: string;
}

/** A trigger, decoded. */
export interface WhiskTrigger {
  namespace: string;
  name: string;
  parameters: Parameter[];
  /** Triggers have no limits; what is there is kept. */
  limits: JsonObject;
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** By `ns/rule`, in the order they were added; absent in a trigger that never had one. */
  rules?: ReadonlyMap<string, RuleLink>;
  /** Epoch ms of the last PUT. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}
