// What npm run test:all may install: Debian packages that optional measures use, and servers that tests run against.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installAnsible } from './engines/ansible.mjs';
import { hasKafka, installKafka } from './engines/kafka.mjs';
import { root } from './fresh.mjs';

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
const packages = [
  { name: 'redis-server', missing: () => !has('redis-server') },
  { name: 'nftables', missing: () => !has('nft') },
  { name: 'ruby', missing: () => !has('ruby') },
  { name: 'php-cli', missing: () => !has('php') },
  { name: 'maven', missing: () => has('java') && !has('mvn') && !hasKafka() },
  { name: 'docker.io', missing: () => !has('dockerd') },
  { name: 'docker-compose', missing: () => !has('docker-compose') },
  { name: 'nginx', missing: () => !has('nginx') },
  { name: 'libgoogle-gson-java', missing: () => has('javac') && !existsSync('/usr/share/java/gson.jar') },
];

/** For the test of a deployment, which takes minutes. */
const deploymentPackages = [
  { name: 'systemd-container', missing: () => !has('systemd-nspawn') },
  { name: 'prometheus', missing: () => !has('prometheus') },
  { name: 'python3-apt', missing: () => spawnSync('/usr/bin/python3', ['-c', 'import apt']).status !== 0 },
];

/** Installs what is missing where that can be done; says what stays missing. */
export function prepareSystem() {
  installPackages();
  installEngines();
  for (const [name, install] of [
    ['Kafka', installKafka],
    ['Ansible', installAnsible],
  ]) {
    const reason = install();
    if (reason !== undefined) console.log(`Not installed: ${name} (${reason}); tests that need it are skipped.`);
  }
}

/** The lock file pins the servers; they are no part of what npm start installs. */
function installEngines() {
  const cwd = join(root, 'test', 'engines');
  const { dependencies } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  if (Object.keys(dependencies).every((name) => existsSync(join(cwd, 'node_modules', name)))) return;
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund'], {
    cwd,
    stdio: 'ignore',
    timeout: 300_000,
  });
  if (status !== 0) console.log('Not installed: the servers of test/engines; tests that need them are skipped.');
}

function installPackages() {
  const wanted = process.env.TEST_DEPLOYMENT === '1' ? [...packages, ...deploymentPackages] : packages;
  const names = wanted.filter(({ missing }) => missing()).map(({ name }) => name);
  if (names.length === 0) return;
  const options = { stdio: 'ignore', timeout: 300_000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const installed =
    process.getuid?.() === 0 &&
    (spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0 ||
      (spawnSync('apt-get', ['update', '-qq'], options).status === 0 &&
        spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0));
  if (!installed) console.log(`Not installed: ${names.join(', ')}; tests that need them are skipped.`);
}
