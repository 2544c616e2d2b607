import type { EntityReference } from './names.js';
import type { Parameter } from './parameters.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';
import { readReference, writeReference, checkEntityType, isEntityName } from './names.js';
import { asString } from './malformed.js';
import { readParameters, writeParameters } from './parameters.js';
import type { RuleStatus } from './trigger.js';

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
