import type { LimitBounds } from '@gpuwhisk/common/entities/limits';
import { asBoolean, asObject } from '@gpuwhisk/common/entities/malformed';
import type { PackageBinding } from '@gpuwhisk/common/entities/package';
import { readBinding } from '@gpuwhisk/common/entities/package';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import { parametersBytes, readParameters } from '@gpuwhisk/common/entities/parameters';
import { readVersion } from '@gpuwhisk/common/entities/version';
import type { JsonValue } from '@gpuwhisk/common/json';
import { checkFieldSize, optionalField, readFields, withoutAbsent } from '../http/put-fields.js';

/** The body of a package's PUT: what it names. Absent parts are kept, or have defaults in a new package. */
export interface PackagePut {
  binding?: PackageBinding;
  parameters?: Parameter[];
  version?: string;
  publish?: boolean;
  annotations?: Parameter[];
}

/**
 * Reads a PUT body; namespace `_` of a binding is `namespace`. What can be large is read and measured first, then the
 * rest is read. Unknown fields are ignored. Throws ApiError (400, 413).
 */
export function readPackagePut(
  body: JsonValue,
  namespace: string,
  { maxParametersBytes }: Pick<LimitBounds, 'maxParametersBytes'>,
): PackagePut {
  return readFields(() => {
    const fields = asObject(body, "Object expected in field 'binding'");
    const parameters = optionalField(fields.parameters, readParameters);
    const annotations = optionalField(fields.annotations, readParameters);
    if (parameters !== undefined) checkFieldSize('parameters', parametersBytes(parameters), maxParametersBytes);
    if (annotations !== undefined) checkFieldSize('annotations', parametersBytes(annotations), maxParametersBytes);
    const binding = fields.binding === undefined ? undefined : readBinding(fields.binding);
    return withoutAbsent<PackagePut>({
      binding: binding?.namespace === '_' ? { ...binding, namespace } : binding,
      parameters,
      version: optionalField(fields.version, readVersion),
      publish: optionalField(fields.publish, asBoolean),
      annotations,
    });
  });
}
