// What this machine has for the tests of the playbooks; npm run test:all installs it where it may.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCouchdb } from '../contract/couchdb-server.js';

/** Ansible and its linter. */
export const hasAnsible = existsSync(
  fileURLToPath(new URL('../../../node_modules/.cache/ansible/bin/ansible-lint', import.meta.url)),
);

const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url));
const kafka = existsSync(cache) ? readdirSync(cache).find((name) => /^kafka-[\d.]+$/.test(name)) : undefined;

/** The folder with Kafka's Java packages. */
export const kafkaPackages = join(cache, kafka ?? '');

const programs = ['systemd-nspawn', 'nsenter', 'ip', 'nginx', 'prometheus', 'redis-server', 'nft', 'java'];
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;

/** All that a deployment onto a machine made of this one needs, and that it is asked for: it takes minutes. */
export const hasDeployment =
  process.env.TEST_DEPLOYMENT === '1' &&
  hasAnsible &&
  hasCouchdb &&
  kafka !== undefined &&
  process.getuid?.() === 0 &&
  programs.every(has);
