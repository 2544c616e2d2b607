// Triggers in the store, and the bodies of the PUTs of triggers and rules.
import { alreadyExists, concurrentModification, feedNameInvalid, tooLarge } from '@gpuwhisk/common/errors';
import {
  isEntityName,
  readReference,
  resolveReference,
  bumpPatch,
  firstVersion,
  readVersion,
} from '@gpuwhisk/common/entities/names';
import { parameterValue, parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { RuleLink, WhiskTrigger } from '@gpuwhisk/common/entities/trigger';
import { readTrigger, triggerDocument } from '@gpuwhisk/common/entities/trigger';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { KeyQueue } from '@gpuwhisk/common/store/key-queue';
import type { ByteBound, LimitBounds } from '@gpuwhisk/common/entities/limits';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import { asBoolean, asObject } from '@gpuwhisk/common/entities/malformed';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { deleteEntity, findStoredEntity, readStoredEntity, writeEntity } from '../entities/stored-entity.js';
import { checkFieldSize, optionalField, readFields, withoutAbsent } from '../http/request.js';

/** Characters of a trigger's links to rules, which are read and written as a whole. */
const maxLinkCharacters = 1024 * 1024;
/** Most attempts to change a trigger that other controllers change concurrently. */
const maxTries = 10;

/** Reads and writes triggers and the links of rules in them. `id` is `ns/trigger`. */
export class TriggerWriter {
  /** Serialises the writes of a trigger, so that concurrent writes of rules do not use up each other's attempts. */
  private readonly writes = new KeyQueue();

  constructor(private readonly store: ArtifactStore) {}

  /** The trigger. Throws ApiError (404, 409, 500). */
  read(id: string): Promise<WhiskTrigger> {
    return readStoredEntity(this.store, id, readTrigger);
  }

  /** The trigger, or undefined if there is none. Throws ApiError (409, 500). */
  find(id: string): Promise<WhiskTrigger | undefined> {
    return findStoredEntity(this.store, id, readTrigger);
  }

  /** Creates a trigger, or updates it if `overwrite` is set; its rules are kept. Throws ApiError (400, 409, 500). */
  put(namespace: string, name: string, put: TriggerPut, overwrite: boolean, nowMs: number): Promise<WhiskTrigger> {
    const id = `${namespace}/${name}`;
    return this.writes.run(id, async () => {
      const stored = await this.find(id);
      if (stored !== undefined && !overwrite) throw alreadyExists();
      const trigger =
        stored === undefined ? newTrigger(namespace, name, put, nowMs) : updatedTrigger(stored, put, nowMs);
      return { ...trigger, revision: await writeEntity(this.store, triggerDocument(trigger)) };
    });
  }

  /** Deletes a trigger; its rules are kept without effect. Throws ApiError (404, 409, 500). */
  delete(id: string): Promise<WhiskTrigger> {
    return this.writes.run(id, async () => {
      const trigger = await this.read(id);
      await deleteEntity(this.store, id, trigger.revision);
      return trigger;
    });
  }

  /**
   * Sets the link of a rule (`ns/rule`) in a trigger; an undefined `link` removes it. Resolves with false if the trigger
   * does not exist. Throws ApiError (409, 413, 500).
   */
  setLink(id: string, rule: string, link: RuleLink | undefined): Promise<boolean> {
    return this.writes.run(id, async () => {
      for (let tries = 1; ; tries++) {
        const trigger = await this.find(id);
        if (trigger === undefined) return false;
        const rules = new Map(trigger.rules);
        if (link === undefined && !rules.delete(rule)) return true;
        if (link !== undefined) {
          const isNew = !rules.has(rule);
          rules.set(rule, link);
          const { length } = JSON.stringify([...rules]);
          if (isNew && length > maxLinkCharacters) throw tooLarge('Rules of the trigger', length, maxLinkCharacters);
        }
        try {
          await this.store.put('whisks', triggerDocument({ ...trigger, rules }));
          return true;
        } catch (error) {
          if (!(error instanceof DocumentConflictError)) throw error;
          if (tries >= maxTries) throw concurrentModification();
        }
      }
    });
  }
}

function newTrigger(namespace: string, name: string, put: TriggerPut, nowMs: number): WhiskTrigger {
  const annotations = put.annotations ?? [];
  checkFeed(annotations);
  return {
    namespace,
    name,
    parameters: put.parameters ?? [],
    limits: {},
    version: put.version ?? firstVersion,
    publish: put.publish ?? false,
    annotations,
    updated: nowMs,
    revision: '',
  };
}

function updatedTrigger(stored: WhiskTrigger, put: TriggerPut, nowMs: number): WhiskTrigger {
  return { ...stored, version: bumpPatch(stored.version), ...put, updated: nowMs };
}

/** Refuses a feed that is no valid name of an action; the client checks whether the action exists. Throws ApiError (400). */
function checkFeed(annotations: readonly Parameter[]): void {
  const feed = parameterValue(annotations, 'feed');
  if (feed === undefined) return;
  const segments = typeof feed === 'string' ? feed.split('/').filter((segment) => segment !== '') : [];
  if (segments.length === 0 || !segments.every(isEntityName)) throw feedNameInvalid();
}

/** The body of a trigger's PUT. An absent field keeps its stored value, or has its default in a new trigger. */
interface TriggerPut {
  parameters?: Parameter[];
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
}

/** The body of a rule's PUT, with the namespaces of its targets completed. */
export interface RulePut extends Omit<TriggerPut, 'parameters'> {
  trigger?: EntityReference;
  action?: EntityReference;
}

type PutBounds = Pick<LimitBounds, 'maxParameters'>;

/** Reads the body of a trigger's PUT; unknown fields are ignored. Throws ApiError (400, 413). */
export function readTriggerPut(body: JsonValue, { maxParameters }: PutBounds): TriggerPut {
  return readFields(() => {
    const fields = asObject(body);
    const parameters = optionalField(fields.parameters, readParameters);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), maxParameters);
    return withoutAbsent<TriggerPut>({ parameters, ...readCommonFields(fields, maxParameters) });
  });
}

/**
 * Reads the body of a rule's PUT. Namespace `_` of a target becomes `namespace`; unknown fields are ignored. Throws ApiError
 * (400, 413).
 */
export function readRulePut(body: JsonValue, namespace: string, { maxParameters }: PutBounds): RulePut {
  const readTarget = (value: JsonValue): EntityReference => resolveReference(readReference(value), namespace);
  return readFields(() => {
    const fields = asObject(body);
    const common = readCommonFields(fields, maxParameters);
    return withoutAbsent<RulePut>({
      trigger: optionalField(fields.trigger, readTarget),
      action: optionalField(fields.action, readTarget),
      ...common,
    });
  });
}

/** Reads the fields that triggers and rules share. Large fields are read and measured before the others. */
function readCommonFields(fields: JsonObject, maxParameters: ByteBound) {
  const annotations = optionalField(fields.annotations, readParameters);
  if (annotations !== undefined) checkFieldSize('annotations', parametersBytes(annotations), maxParameters);
  return {
    annotations,
    version: optionalField(fields.version, readVersion),
    publish: optionalField(fields.publish, asBoolean),
  };
}
