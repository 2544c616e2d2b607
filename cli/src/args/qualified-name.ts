import { argumentError } from '../errors.js';

/** A name as users write it: `action`, `package/action`, `/namespace/action` or `/namespace/package/action`. */
export interface QualifiedName {
  /** `_`, the key's own namespace, if the user gives none. */
  namespace: string;
  packageName: string;
  /** The name alone. */
  entity: string;
  /** The name with its package: `package/action`. */
  path: string;
}

/** The key's own namespace, whatever its name. */
export const ownNamespace = '_';

/** @throws WskError if `name` has an empty part or too many. */
export function parseQualifiedName(name: string): QualifiedName {
  const full = withLeadingSlash(name);
  const parts = full.split('/');
  const entity = parts[parts.length - 1] ?? '';
  if (!full.startsWith('/')) {
    if (full === '' || full === '.') throw invalid(name);
    const packageName = parts.length === 2 ? (parts[0] ?? '') : '';
    return { namespace: ownNamespace, packageName, entity, path: full };
  }
  const [namespace = '', ...rest] = parts.slice(1);
  if (rest.length > 2 || [namespace, ...rest].some((part) => part === '' || part === '.')) throw invalid(name);
  return { namespace, packageName: rest.length === 2 ? (rest[0] ?? '') : '', entity, path: rest.join('/') };
}

/** `/namespace/[package/]name` of a name as users write it; sequences list their actions in this form. */
export function fullyQualified(name: string): string {
  const full = withLeadingSlash(name);
  return full.startsWith('/') ? full : `/${ownNamespace}/${full}`;
}

/** Adds the slash that users may leave out before `namespace/package/name`. */
function withLeadingSlash(name: string): string {
  const parts = name.split('/');
  return parts.length === 3 && parts[0] !== '' ? `/${name}` : name;
}

function invalid(name: string): Error {
  return argumentError(`'${name}' is not a valid qualified name: A valid qualified name must be specified.`);
}
