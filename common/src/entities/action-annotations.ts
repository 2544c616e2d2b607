// Annotations `requirements` and `warm` of actions.
import { isJsonObject } from '../json.js';

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

/** Largest number of modules that annotation `warm` may name, and that are learned of one action. */
export const maxImports = 64;
const maxModuleNameLength = 200;
const importName = /^[A-Za-z_@][\w@./:-]*$/;
const moduleName = /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/;
const functionName = /^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$/;

/** Annotation `warm` cannot be understood; `message` says what was found. */
class WarmError extends Error {
  override name = 'WarmError';
}

/** Annotation `warm`: what a container does before it gets a run. */
export interface Warm {
  /** Modules that are loaded, sorted and without repetition. */
  imports: readonly string[];
  /** Whether imports are learned; absent: they are. */
  learns?: false;
  /** Whether a CUDA context is to be made ahead, where there is a device. */
  cuda: boolean;
  /** A function of the action that is called once, to load a model. */
  entry?: string;
  /** Whether further instances are copies of the first one's state right after its code was loaded; absent: as the code says. */
  snapshot?: boolean;
}

/** Reads annotation `warm`; `false` stands for nothing ahead. Throws WarmError. */
export function readWarm(value: unknown): Warm {
  if (value === false) return { imports: [], cuda: false, learns: false };
  if (!isJsonObject(value)) throw new WarmError("Annotation 'warm' must be an object, or false.");
  const unknown = Object.keys(value).find((key) => !['imports', 'cuda', 'entry', 'snapshot'].includes(key));
  if (unknown !== undefined) {
    throw new WarmError(
      `Annotation 'warm' has 'imports', 'cuda', 'entry' and 'snapshot'; found '${unknown.slice(0, maxModuleNameLength)}'.`,
    );
  }
  const { imports = [], cuda = false, entry, snapshot } = value;
  if (!Array.isArray(imports) || imports.length > maxImports || !imports.every(isImportName)) {
    throw new WarmError(`Field 'imports' of annotation 'warm' must be a list of at most ${maxImports} module names.`);
  }
  if (typeof cuda !== 'boolean') throw new WarmError("Field 'cuda' of annotation 'warm' must be true or false.");
  if (snapshot !== undefined && typeof snapshot !== 'boolean') {
    throw new WarmError("Field 'snapshot' of annotation 'warm' must be true or false.");
  }
  const names = [...new Set(imports as string[])].sort();
  const warm: Warm = { imports: names, cuda, ...(snapshot !== undefined && { snapshot }) };
  if (entry === undefined) return warm;
  if (typeof entry !== 'string' || entry.length > maxModuleNameLength || !functionName.test(entry)) {
    throw new WarmError("Field 'entry' of annotation 'warm' must be the name of a function of the action.");
  }
  return { ...warm, entry };
}

/** Whether a value is the full name of a Python module in ASCII, of bounded length. */
export function isModuleName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= maxModuleNameLength && moduleName.test(name);
}

/** Whether a value can be the name of a module in annotation `warm`, or a learned one: of Python, or for Node.js's `require`. */
export function isImportName(name: unknown): name is string {
  return (
    typeof name === 'string' && name.length <= maxModuleNameLength && importName.test(name) && !name.includes('..')
  );
}
