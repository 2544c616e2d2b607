// Schemathesis, which tries an API by its OpenAPI document, from Python's packages.
import { installPython } from './python-packages.mjs';

/** Installs it, once. Resolves with why it could not; undefined: it is there. */
export function installSchemathesis() {
  return installPython('schemathesis', 'schemathesis', ['schemathesis==4.32.5']);
}
