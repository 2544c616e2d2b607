// Software that npm run test:all may install: Debian packages that optional measures use, and servers that tests run
// against.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installAnsible } from './engines/ansible.mjs';
import { hasJdk, installJdk } from './engines/jdk.mjs';
import { hasKafka, installKafka } from './engines/kafka.mjs';
import { succeeds } from './engines/quiet.mjs';
import { installSchemathesis } from './engines/schemathesis.mjs';
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
  { name: 'chromium', missing: () => !has('chromium') },
  { name: 'patchelf', missing: () => has('javac') && !has('patchelf') && !hasJdk() },
  { name: 'libgoogle-gson-java', missing: () => has('javac') && !existsSync('/usr/share/java/gson.jar') },
];

/** clang with libFuzzer, whose package has the version in its name. */
function fuzzerPackages() {
  if (hasFuzzer()) return [];
  const ask = () => {
    const { stdout } = spawnSync('apt-cache', ['depends', 'clang'], { encoding: 'utf8', timeout: 60_000 });
    return /Depends: clang-(\d+)/.exec(stdout ?? '')?.[1];
  };
  let version = ask();
  if (version === undefined) {
    // The machine has never fetched the list of packages.
    spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', timeout: 300_000 });
    version = ask();
  }
  if (version === undefined) return [];
  return ['clang', `libclang-rt-${version}-dev`].map((name) => ({ name, missing: () => !hasFuzzer() }));
}

const hasFuzzer = () => {
  const { stdout } = spawnSync('clang++', ['-print-runtime-dir'], { encoding: 'utf8' });
  return typeof stdout === 'string' && existsSync(stdout.trim());
};

/** Packages for the test of a deployment, which takes minutes. */
const deploymentPackages = [
  { name: 'systemd-container', missing: () => !has('systemd-nspawn') },
  { name: 'prometheus', missing: () => !has('prometheus') },
  { name: 'python3-apt', missing: () => spawnSync('/usr/bin/python3', ['-c', 'import apt']).status !== 0 },
];

/** Packages for a cluster on this machine. */
const clusterPackages = [
  { name: 'redis-server', missing: () => !has('redis-server') },
  { name: 'default-jre-headless', missing: () => !has('java') },
  { name: 'maven', missing: () => !has('mvn') && !hasKafka() },
];

/** Installs missing packages of `npm run cluster`; prints which cannot be installed, and why. */
export async function installForCluster() {
  const names = installPackages(clusterPackages);
  if (names.length > 0) console.error(`Not installed: ${names.join(', ')}; that takes root, apt-get and the network.`);
  const [reason, hasEngines] = await Promise.all([installKafka(), installEngines()]);
  if (reason !== undefined) console.error(`Not installed: Kafka (${reason}).`);
  if (!hasEngines) console.error("Not installed: the server of CouchDB's protocol (npm ci failed in test/engines).");
}

/** Installs missing Debian packages where the machine allows it; prints which stay missing. */
export function installSystemPackages() {
  const deployment = process.env.TEST_DEPLOYMENT === '1' ? deploymentPackages : [];
  const names = installPackages([...packages, ...fuzzerPackages(), ...deployment]);
  if (names.length > 0) console.log(`Not installed: ${names.join(', ')}; tests that need them are skipped.`);
}

/** Installs what npm, Maven, Python and another release of Debian bring, all at once; prints what stays missing. */
export async function installFromRegistries() {
  const asked = {
    'the servers of test/engines': installEngines().then((isDone) => (isDone ? undefined : 'npm ci failed')),
    Kafka: installKafka(),
    'JDK 21': installJdk(),
    Ansible: installAnsible(),
    Schemathesis: installSchemathesis(),
    'Node.js 24': installNode(),
  };
  for (const [name, installation] of Object.entries(asked)) {
    const reason = await installation;
    if (reason !== undefined) console.log(`Not installed: ${name} (${reason}); tests that need it are skipped.`);
  }
}

/** Fetches Node.js 24 for tests of it, where they run by an older one. Resolves with the reason in words if that fails. */
async function installNode() {
  if (Number.parseInt(process.versions.node, 10) >= 24) return undefined;
  const words = [join(root, 'scripts', 'own-node.cjs')];
  return (await succeeds(process.execPath, words, { timeout: 900_000 })) ? undefined : 'npm could not fetch it';
}

/**
 * Installs the servers that the lock file pins, which npm start does not install. Resolves with whether they are installed.
 */
async function installEngines() {
  const cwd = join(root, 'test', 'engines');
  const { dependencies } = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'));
  if (Object.keys(dependencies).every((name) => existsSync(join(cwd, 'node_modules', name)))) return true;
  return succeeds('npm', ['ci', '--no-audit', '--no-fund'], { cwd, timeout: 300_000 });
}

/** Installs the missing ones of these packages; returns their names if the installation fails. */
function installPackages(wanted) {
  const names = wanted.filter(({ missing }) => missing()).map(({ name }) => name);
  if (names.length === 0) return [];
  const options = { stdio: 'ignore', timeout: 300_000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const installed =
    process.getuid?.() === 0 &&
    (spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0 ||
      (spawnSync('apt-get', ['update', '-qq'], options).status === 0 &&
        spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0));
  return installed ? [] : names;
}
