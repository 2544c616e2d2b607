import type { Exec } from '@gpuwhisk/common/entities/action';
import { execBytes, readExecInput } from '@gpuwhisk/common/entities/exec-codec';
import { readLimitsPatch } from '@gpuwhisk/common/entities/limits';
import type { LimitBounds, LimitsPatch } from '@gpuwhisk/common/entities/limits';
import { asArray, asBoolean, asObject, asString } from '@gpuwhisk/common/entities/malformed';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters';
import { readVersion } from '@gpuwhisk/common/entities/version';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { checkFieldSize, optionalField, readFields, withoutAbsent } from '../http/put-fields.js';

/** The body of an action's PUT: what it names. Absent parts are kept, or have defaults in a new action. */
export interface ActionPut {
  exec?: Exec;
  parameters?: Parameter[];
  limits?: LimitsPatch;
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
  delAnnotations?: string[];
}

/** What a PUT may be as large as. */
export type PutBounds = Pick<LimitBounds, 'maxParametersBytes'> & { maxCodeBytes: number };

/**
 * Reads a PUT body. As in OpenWhisk, what can be large is read and measured first, then the rest is read.
 * Unknown fields are ignored. Throws ApiError (400, 413).
 */
export function readActionPut(body: JsonValue, manifest: RuntimeManifest, bounds: PutBounds): ActionPut {
  return readFields(() => {
    const fields = asObject(body, "Object expected in field 'exec'");
    const exec = optionalField(fields.exec, (value) => readExecInput(value, manifest));
    const parameters = optionalField(fields.parameters, readParameters);
    const annotations = optionalField(fields.annotations, readParameters);
    if (exec !== undefined) checkFieldSize('exec', execBytes(exec), bounds.maxCodeBytes);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), bounds.maxParametersBytes);
    if (annotations !== undefined)
      checkFieldSize('annotations', parametersBytes(annotations), bounds.maxParametersBytes);
    return withoutAbsent<ActionPut>({
      exec,
      parameters,
      annotations,
      limits: optionalField(fields.limits, readLimitsPatch),
      version: optionalField(fields.version, readVersion),
      publish: optionalField(fields.publish, asBoolean),
      delAnnotations: optionalField(fields.delAnnotations, readKeys),
    });
  });
}

function readKeys(value: JsonValue): string[] {
  const text = (found: JsonValue, type: string): string => `Expected ${type}, but got ${JSON.stringify(found)}`;
  return asArray(value, text(value, 'Array as JsArray')).map((key) => asString(key, text(key, 'String as JsString')));
}
