import { malformedContent, tooLarge } from '@gpuwhisk/common/errors';
import type { Exec } from '@gpuwhisk/common/entities/action';
import { execBytes, readExecInput } from '@gpuwhisk/common/entities/exec-codec';
import { readLimitsPatch } from '@gpuwhisk/common/entities/limits';
import type { LimitBounds, LimitsPatch } from '@gpuwhisk/common/entities/limits';
import { MalformedError, asArray, asBoolean, asObject, asString } from '@gpuwhisk/common/entities/malformed';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters-codec';
import { readVersion } from '@gpuwhisk/common/entities/version';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';

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

/** A field's value, or undefined where it is absent or null. Throws MalformedError as `read` does. */
function optional<T>(value: JsonValue | undefined, read: (value: JsonValue) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value);
}

/**
 * Reads a PUT body. As in OpenWhisk, what can be large is read and measured first, then the rest is read.
 * Unknown fields are ignored. Throws ApiError (400, 413).
 */
export function readActionPut(body: JsonValue, manifest: RuntimeManifest, bounds: PutBounds): ActionPut {
  try {
    const fields = asObject(body, "Object expected in field 'exec'");
    const exec = optional(fields.exec, (value) => readExecInput(value, manifest));
    const parameters = optional(fields.parameters, readParameters);
    const annotations = optional(fields.annotations, readParameters);
    if (exec !== undefined) checkSize('exec', execBytes(exec), bounds.maxCodeBytes);
    if (parameters !== undefined) checkSize('parameters', parametersBytes(parameters), bounds.maxParametersBytes);
    if (annotations !== undefined) checkSize('annotations', parametersBytes(annotations), bounds.maxParametersBytes);
    return withoutAbsent({
      exec,
      parameters,
      annotations,
      limits: optional(fields.limits, readLimitsPatch),
      version: optional(fields.version, readVersion),
      publish: optional(fields.publish, asBoolean),
      delAnnotations: optional(fields.delAnnotations, readKeys),
    });
  } catch (error) {
    if (error instanceof MalformedError) throw malformedContent(error.message);
    throw error;
  }
}

function readKeys(value: JsonValue): string[] {
  const text = (found: JsonValue, type: string): string => `Expected ${type}, but got ${JSON.stringify(found)}`;
  return asArray(value, text(value, 'Array as JsArray')).map((key) => asString(key, text(key, 'String as JsString')));
}

function checkSize(field: string, bytes: number, allowedBytes: number): void {
  if (bytes > allowedBytes) throw tooLarge(field, bytes, allowedBytes);
}

function withoutAbsent(fields: { [Field in keyof ActionPut]: ActionPut[Field] | undefined }): ActionPut {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
