const maxRequirements = 100;
const maxLength = 200;

const name = '[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?';
const extras = `(?:\\s*\\[\\s*${name}(?:\\s*,\\s*${name})*\\s*\\])?`;
const clause = '(?:==|!=|<=|>=|~=|<|>)\\s*[A-Za-z0-9][A-Za-z0-9.*+!_-]*';
const requirement = new RegExp(`^${name}${extras}(?:\\s*${clause}(?:\\s*,\\s*${clause})*)?$`);

/** Annotation `requirements` does not name Python packages; `message` says what was found. */
export class RequirementsError extends Error {
  override name = 'RequirementsError';
}

/**
 * The packages that annotation `requirements` names, without blanks, sorted and without repetition. Items are
 * names with optional extras and versions (PEP 508, without URLs and markers): they reach pip's command line, so
 * nothing that pip could take for an option, a path or an address passes. Throws RequirementsError.
 */
export function validateRequirements(value: unknown): string[] {
  if (!Array.isArray(value)) throw new RequirementsError("Annotation 'requirements' must be a list of package names.");
  if (value.length > maxRequirements) {
    throw new RequirementsError(
      `Annotation 'requirements' names ${value.length} packages; at most ${maxRequirements}.`,
    );
  }
  const checked = value.map((item: unknown) => {
    const text = typeof item === 'string' ? item.trim() : '';
    if (text.length <= maxLength && requirement.test(text)) return text.replace(/\s+/g, '');
    const found = String(JSON.stringify(item)).slice(0, maxLength);
    throw new RequirementsError(
      `Annotation 'requirements' must hold package names with optional versions, such as "numpy>=1.26"; found ${found}.`,
    );
  });
  return [...new Set(checked)].sort();
}
