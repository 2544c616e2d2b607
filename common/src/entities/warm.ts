import { isJsonObject } from '../json.js';

const maxImports = 64;
const maxLength = 200;
const importName = /^[A-Za-z_@][\w@./:-]*$/;
const functionName = /^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$/;

/** Annotation `warm` cannot be understood; `message` says what was found. */
export class WarmError extends Error {
  override name = 'WarmError';
}

/** Annotation `warm`: what a container does before it gets a run. */
export interface Warm {
  /** Modules that are loaded, sorted and without repetition. */
  imports: readonly string[];
  /** Whether a CUDA context is to be made ahead, where there is a device. */
  cuda: boolean;
  /** A function of the action that is called once, to load a model. */
  entry?: string;
}

/** Reads annotation `warm`. Throws WarmError. */
export function readWarm(value: unknown): Warm {
  if (!isJsonObject(value)) throw new WarmError("Annotation 'warm' must be an object.");
  const unknown = Object.keys(value).find((key) => !['imports', 'cuda', 'entry'].includes(key));
  if (unknown !== undefined) {
    throw new WarmError(`Annotation 'warm' has 'imports', 'cuda' and 'entry'; found '${unknown.slice(0, maxLength)}'.`);
  }
  const { imports = [], cuda = false, entry } = value;
  if (!Array.isArray(imports) || imports.length > maxImports || !imports.every(isImportName)) {
    throw new WarmError(`Field 'imports' of annotation 'warm' must be a list of at most ${maxImports} module names.`);
  }
  if (typeof cuda !== 'boolean') throw new WarmError("Field 'cuda' of annotation 'warm' must be true or false.");
  const warm: Warm = { imports: [...new Set(imports as string[])].sort(), cuda };
  if (entry === undefined) return warm;
  if (typeof entry !== 'string' || entry.length > maxLength || !functionName.test(entry)) {
    throw new WarmError("Field 'entry' of annotation 'warm' must be the name of a function of the action.");
  }
  return { ...warm, entry };
}

function isImportName(name: unknown): boolean {
  return typeof name === 'string' && name.length <= maxLength && importName.test(name) && !name.includes('..');
}
