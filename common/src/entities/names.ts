/** Characters of a namespace's or entity's name, at most. */
export const maxNameLength = 256;

/** OpenWhisk's EntityName: ASCII word characters, and inside also `@ . & -` and space; no space at the end. */
const namePattern = /^(?:\w|\w[\w@ .&-]{0,254}[\w@.&-])$/;

/** Whether `name` can name an entity, a package or a namespace. */
export function isEntityName(name: string): boolean {
  return namePattern.test(name);
}

/** Why `name` cannot name an entity, in OpenWhisk's words (its spelling too); undefined if it can. */
export function entityNameProblem(name: string): string | undefined {
  if (isEntityName(name)) return undefined;
  return name.length > maxNameLength
    ? `Name segement longer than allowed: ${name.length} > ${maxNameLength}.`
    : 'The name of the entity contains illegal characters.';
}

/** Why `name` cannot name a namespace, in OpenWhisk's words; undefined if it can. */
export function namespaceNameProblem(name: string): string | undefined {
  if (isEntityName(name)) return undefined;
  return name.length > maxNameLength
    ? `Namespace longer than allowed: ${name.length} > ${maxNameLength}.`
    : 'The namespace contains illegal characters.';
}

const fullNameText =
  'requirement failed: The fully qualified name of the entity must contain at least the namespace and the name of the entity.';

/** `/ns/pkg/a` or `ns/pkg/a` → `/ns/pkg/a`. Throws Error with OpenWhisk's text. */
export function canonicalFullName(text: string): string {
  const parts = text.split('/').filter((part) => part !== '');
  if (parts.length < 2) throw new Error(fullNameText);
  if (!parts.every(isEntityName)) throw new Error('fully qualified name malformed');
  return `/${parts.join('/')}`;
}
