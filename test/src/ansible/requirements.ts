// Programs and rights that the tests of the playbooks need on this machine. TEST_DEPLOYMENT=1 npm run test:all installs
// missing programs.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasCouchdb } from '../contract/couchdb-server.js';

/** Whether Ansible and its linter are installed. */
export const hasAnsible = existsSync(
  fileURLToPath(new URL('../../../node_modules/.cache/ansible/bin/ansible-lint', import.meta.url)),
);

const cache = fileURLToPath(new URL('../../../node_modules/.cache/', import.meta.url));
const kafka = existsSync(cache) ? readdirSync(cache).find((name) => /^kafka-[\d.]+$/.test(name)) : undefined;

/** The folder with Kafka's Java packages. */
export const kafkaPackages = join(cache, kafka ?? '');

/** Programs that a deployment needs. Ansible's package module also needs python3-apt. */
const programs = ['systemd-nspawn', 'nsenter', 'ip', 'nginx', 'prometheus', 'redis-server', 'nft', 'java'];
const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
const probe = ['--quiet', '--keep-unit', '--register=no', '--directory=/', '--volatile=yes', '--network-veth'];

/** Whether systemd-nspawn can start a container on this machine. */
const canNspawn = () =>
  spawnSync('systemd-nspawn', [...probe, `--machine=gwprobe${process.pid}`, 'true'], { timeout: 10_000 }).status === 0;

/** Why the playbooks cannot run on a container of this machine, or undefined if they can. */
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

/** Why the deployment test is skipped here, or undefined if it runs. */
export const noDeployment = findObstacle();
