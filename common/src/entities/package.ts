import type { Parameter } from './parameters.js';
import type { JsonObject, JsonValue } from '../json.js';
import { isJsonObject } from '../json.js';
import type { StoredDocument } from '../store/artifact-store.js';
import { MalformedError, asObject, asString } from './malformed.js';
import { EntityTypeError, isEntityName } from './names.js';
import { readParameters, writeParameters } from './parameters.js';

/** The package that a binding refers to, possibly in another namespace. */
export interface PackageBinding {
  namespace: string;
  name: string;
}

/** A package, or a binding to one, decoded. */
export interface WhiskPackage {
  namespace: string;
  name: string;
  /** Absent: the package has actions of its own. */
  binding?: PackageBinding;
  parameters: Parameter[];
  version: string;
  publish: boolean;
  annotations: Parameter[];
  /** Epoch ms of the last write. */
  updated: number;
  /** The store's revision of the document this was read from. */
  revision: string;
}

/**
 * A package from its document. Throws EntityTypeError if it is another entity, MalformedError if it cannot be
 * understood.
 */
export function readPackage(document: StoredDocument): WhiskPackage {
  const { entityType, namespace, name, binding, version, publish, updated } = document;
  if (entityType !== undefined && entityType !== 'package') {
    throw new EntityTypeError(`'${document._id}' is of type ${JSON.stringify(entityType)}, not a package`);
  }
  if (entityType === undefined && !isJsonObject(binding)) throw new EntityTypeError(`'${document._id}' is no package`);
  const bound = readBinding(binding ?? {});
  return {
    namespace: asString(namespace, 'namespace malformed'),
    name: asString(name, 'entity name malformed'),
    ...(bound !== undefined && { binding: bound }),
    parameters: readParameters(document.parameters, document._id),
    version: asString(version, 'semantic version malformed'),
    publish: publish === true,
    annotations: readParameters(document.annotations),
    updated: typeof updated === 'number' ? updated : 0,
    revision: typeof document._rev === 'string' ? document._rev : '',
  };
}

/** `{}` is no binding: undefined. Throws MalformedError with the words of OpenWhisk's parser. */
export function readBinding(value: JsonValue): PackageBinding | undefined {
  const fields = asObject(value, "Object expected in field 'namespace'");
  if (Object.keys(fields).length === 0) return undefined;
  return { namespace: boundName(fields, 'namespace'), name: boundName(fields, 'name') };
}

function boundName(fields: JsonObject, field: string): string {
  const value = fields[field];
  if (value === undefined) throw new MalformedError(`Object is missing required member '${field}'`);
  const name = asString(value, 'entity name malformed');
  if (!isEntityName(name)) throw new MalformedError('entity name malformed');
  return name;
}

/** The store's id of a package. */
export function packageId({ namespace, name }: PackageBinding): string {
  return `${namespace}/${name}`;
}

/** A binding as JSON; none is `{}`. */
export function writeBinding(binding: PackageBinding | undefined): JsonObject {
  return binding === undefined ? {} : { namespace: binding.namespace, name: binding.name };
}

/** The document of a package, as OpenWhisk stores it. `_rev` is there if the package has been stored before. */
export function packageDocument(stored: WhiskPackage): StoredDocument {
  return {
    _id: packageId(stored),
    ...(stored.revision !== '' && { _rev: stored.revision }),
    ...packageToApi(stored),
    entityType: 'package',
  };
}

/** The package as the API shows it, without what it contains. */
export function packageToApi(shown: WhiskPackage): JsonObject {
  return {
    namespace: shown.namespace,
    name: shown.name,
    binding: writeBinding(shown.binding),
    parameters: writeParameters(shown.parameters),
    version: shown.version,
    publish: shown.publish,
    annotations: writeParameters(shown.annotations),
    updated: shown.updated,
  };
}
