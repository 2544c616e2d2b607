// Triggers, and the rules that tie them to actions.
import type { JsonObject, JsonValue } from '../json.js';
import type { EntityReference } from './names.js';
import type { Parameter } from './parameters.js';
import { isJsonObject } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';
import { readReference, writeReference, checkEntityType, isEntityName } from './names.js';
import { MalformedError, asObject, asString } from './malformed.js';
import { readParameters, writeParameters } from './parameters.js';

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

/**
 * `active` or `inactive`, with blanks around it or not. Throws MalformedError with OpenWhisk's text for any other
 * string.
 */
export function readRuleStatus(value: JsonValue | undefined): RuleStatus {
  if (typeof value !== 'string') throw new MalformedError('rule state malformed');
  const status = value.trim();
  if (status === 'active' || status === 'inactive') return status;
  throw new MalformedError(
    `requirement failed: ${status === '' ? 'argument undefined' : `${status} is not a recognized rule state`}`,
  );
}

/** A trigger from its document. Throws EntityTypeError if it is another entity, MalformedError. */
export function readTrigger(document: StoredDocument): WhiskTrigger {
  checkEntityType(document, 'trigger');
  const { namespace, name, limits, version, publish, rules, updated, _rev } = document;
  return {
    namespace: asString(namespace, 'namespace malformed'),
    name: asString(name, 'entity name malformed'),
    parameters: readParameters(document.parameters),
    limits: isJsonObject(limits) ? limits : {},
    version: asString(version, 'semantic version malformed'),
    publish: publish === true,
    annotations: readParameters(document.annotations),
    ...(rules !== undefined && rules !== null && { rules: readLinks(rules) }),
    updated: typeof updated === 'number' ? updated : 0,
    revision: typeof _rev === 'string' ? _rev : '',
  };
}

function readLinks(value: JsonValue): Map<string, RuleLink> {
  const links = new Map<string, RuleLink>();
  for (const [rule, link] of Object.entries(asObject(value, 'rules malformed'))) {
    const { action, status, replacing } = asObject(link, 'rules malformed');
    links.set(rule, {
      action: readReference(action),
      status: readRuleStatus(status),
      ...(typeof replacing === 'string' && { replacing }),
    });
  }
  return links;
}

/** The document of a trigger, as OpenWhisk stores it. `_rev` is there if the trigger has been stored before. */
export function triggerDocument(trigger: WhiskTrigger): StoredDocument {
  return {
    _id: `${trigger.namespace}/${trigger.name}`,
    ...(trigger.revision !== '' && { _rev: trigger.revision }),
    ...triggerToApi(trigger),
    ...(trigger.rules !== undefined && { rules: writeLinks(trigger.rules, true) }),
    entityType: 'trigger',
  };
}

/** The trigger as the API shows it. */
export function triggerToApi(trigger: WhiskTrigger): JsonObject {
  const { rules } = trigger;
  return {
    namespace: trigger.namespace,
    name: trigger.name,
    parameters: writeParameters(trigger.parameters),
    limits: trigger.limits,
    version: trigger.version,
    publish: trigger.publish,
    annotations: writeParameters(trigger.annotations),
    ...(rules !== undefined && { rules: writeLinks(rules, false) }),
    updated: trigger.updated,
  };
}

function writeLinks(rules: ReadonlyMap<string, RuleLink>, whole: boolean): JsonObject {
  const links: JsonObject = {};
  for (const [rule, { action, status, replacing }] of rules) {
    links[rule] = { action: writeReference(action), status, ...(whole && replacing !== undefined && { replacing }) };
  }
  return links;
}

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

/** A rule from its document. Throws EntityTypeError if it is another entity, MalformedError. */
export function readRule(document: StoredDocument): WhiskRule {
  checkEntityType(document, 'rule');
  const { name, version, publish, updated, _rev } = document;
  const namespace = asString(document.namespace, 'namespace malformed');
  return {
    namespace,
    name: asString(name, 'entity name malformed'),
    trigger: readTarget(document.trigger, namespace),
    action: readTarget(document.action, namespace),
    version: asString(version, 'semantic version malformed'),
    publish: publish === true,
    annotations: readParameters(document.annotations),
    updated: typeof updated === 'number' ? updated : 0,
    revision: typeof _rev === 'string' ? _rev : '',
  };
}

/** Old documents name trigger and action without the namespace, which is the rule's. */
function readTarget(value: JsonValue | undefined, namespace: string): EntityReference {
  return typeof value === 'string' && isEntityName(value) ? { path: namespace, name: value } : readReference(value);
}

/** The document of a rule, as OpenWhisk stores it. `_rev` is there if the rule has been stored before. */
export function ruleDocument(rule: WhiskRule): StoredDocument {
  return {
    _id: `${rule.namespace}/${rule.name}`,
    ...(rule.revision !== '' && { _rev: rule.revision }),
    ...ruleToApi(rule),
    entityType: 'rule',
  };
}

/** The rule as the API shows it: with its status, or as lists have it without. */
export function ruleToApi(rule: WhiskRule, status?: RuleStatus): JsonObject {
  return {
    namespace: rule.namespace,
    name: rule.name,
    ...(status !== undefined && { status }),
    trigger: writeReference(rule.trigger),
    action: writeReference(rule.action),
    version: rule.version,
    publish: rule.publish,
    annotations: writeParameters(rule.annotations),
    updated: rule.updated,
  };
}
