// What this machine has for the tests of the playbooks; npm run test:all installs it where it may.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Ansible and its linter. */
export const hasAnsible = existsSync(
  fileURLToPath(new URL('../../../node_modules/.cache/ansible/bin/ansible-lint', import.meta.url)),
);
