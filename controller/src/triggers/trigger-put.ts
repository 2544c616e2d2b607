import type { LimitBounds } from '@gpuwhisk/common/entities/limits';
import { readReference, resolveReference } from '@gpuwhisk/common/entities/names';
import type { EntityReference } from '@gpuwhisk/common/entities/names';
import { asBoolean, asObject } from '@gpuwhisk/common/entities/malformed';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters';
import { readVersion } from '@gpuwhisk/common/entities/version';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { checkFieldSize, optionalField, readFields, withoutAbsent } from '../http/put-fields.js';

/** The body of a trigger's PUT: what it names. Absent parts are kept, or have defaults in a new trigger. */
export interface TriggerPut {
  parameters?: Parameter[];
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
}

/** The body of a rule's PUT, the namespaces of its targets filled in. */
export interface RulePut extends Omit<TriggerPut, 'parameters'> {
  trigger?: EntityReference;
  action?: EntityReference;
}

type PutBounds = Pick<LimitBounds, 'maxParametersBytes'>;

/** Unknown fields are ignored. Throws ApiError (400, 413). */
export function readTriggerPut(body: JsonValue, { maxParametersBytes }: PutBounds): TriggerPut {
  return readFields(() => {
    const fields = asObject(body);
    const parameters = optionalField(fields.parameters, readParameters);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), maxParametersBytes);
    return withoutAbsent<TriggerPut>({ parameters, ...readCommonFields(fields, maxParametersBytes) });
  });
}

/** Namespace `_` of a target is `namespace`; unknown fields are ignored. Throws ApiError (400, 413). */
export function readRulePut(body: JsonValue, namespace: string, { maxParametersBytes }: PutBounds): RulePut {
  const readTarget = (value: JsonValue): EntityReference => resolveReference(readReference(value), namespace);
  return readFields(() => {
    const fields = asObject(body);
    const common = readCommonFields(fields, maxParametersBytes);
    return withoutAbsent<RulePut>({
      trigger: optionalField(fields.trigger, readTarget),
      action: optionalField(fields.action, readTarget),
      ...common,
    });
  });
}

/** What can be large is read and measured first. */
function readCommonFields(fields: JsonObject, maxParametersBytes: number) {
  const annotations = optionalField(fields.annotations, readParameters);
  if (annotations !== undefined) checkFieldSize('annotations', parametersBytes(annotations), maxParametersBytes);
  return {
    annotations,
    version: optionalField(fields.version, readVersion),
    publish: optionalField(fields.publish, asBoolean),
  };
}
