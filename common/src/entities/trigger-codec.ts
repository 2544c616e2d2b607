import { isJsonObject } from '../json.js';
import type { JsonObject, JsonValue } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';
import { readReference, writeReference } from './entity-reference.js';
import { checkEntityType } from './entity-type.js';
import { MalformedError, asObject, asString } from './malformed.js';
import { readParameters, writeParameters } from './parameters-codec.js';
import type { RuleLink, RuleStatus, WhiskTrigger } from './trigger.js';

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
