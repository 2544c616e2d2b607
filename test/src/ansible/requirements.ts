// What this machine has for the tests of the playbooks; TEST_DEPLOYMENT=1 npm run test:all installs it where it may.
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

/** Besides these, python3-apt, which Ansible's module for packages needs. */
const programs = ['systemd-nspawn', 'nsenter', 'ip', 'nginx', 'prometheus', 'redis-server', 'nft', 'java'];
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const probe = ['--quiet', '--keep-unit', '--register=no', '--directory=/', '--volatile=yes', '--network-veth'];

/** Whether this machine lets a container of systemd be started. */
const canNspawn = () =>
  spawnSync('systemd-nspawn', [...probe, `--machine=gwprobe${process.pid}`, 'true'], { timeout: 10_000 }).status === 0;

/** What keeps the playbooks from being run onto a machine made of this one; undefined: nothing. */
function findObstacle(): string | undefined {
  if (process.env.TEST_DEPLOYMENT !== '1') return 'it takes minutes; TEST_DEPLOYMENT=1 npm run test:all does it';
  if (kafkaPackages.startsWith('/tmp/')) return 'its machine has a /tmp of its own, where the repository is';
  if (process.getuid?.() !== 0) return 'that takes root';
  const lacking = programs.filter((program) => !has(program));
  if (lacking.length > 0) return `there is no ${lacking.join(', ')}`;
  if (!hasAnsible || !hasCouchdb || kafka === undefined)
    return 'Ansible, Kafka or the CouchDB-protocol server is not there';
  if (!existsSync('/usr/lib/python3/dist-packages/apt')) return 'there is no python3-apt';
  return canNspawn() ? undefined : 'systemd-nspawn cannot start a container here';
}

/** Why no deployment onto a machine with systemd is tested here; undefined: it is. */
export const noDeployment = findObstacle();
