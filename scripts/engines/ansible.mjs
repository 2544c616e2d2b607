// Ansible and its linter for the tests of the playbooks, from Python's packages.
import { installPython } from './python-packages.mjs';

/** Installs both, once. Resolves with why it could not; undefined: they are there. */
export function installAnsible() {
  return installPython('ansible', 'ansible-lint', ['ansible-core==2.19.14', 'ansible-lint==26.10.1']);
}
