// What npm run test:all may install on the machine: Debian packages that optional measures use.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
const packages = [
  { name: 'nftables', missing: () => !has('nft') },
  { name: 'ruby', missing: () => !has('ruby') },
  { name: 'php-cli', missing: () => !has('php') },
  { name: 'libgoogle-gson-java', missing: () => has('javac') && !existsSync('/usr/share/java/gson.jar') },
];

/** Installs missing system packages where apt and root are at hand; says what stays missing. */
export function prepareSystem() {
  const names = packages.filter(({ missing }) => missing()).map(({ name }) => name);
  if (names.length === 0) return;
  const options = { stdio: 'ignore', timeout: 300_000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const installed =
    process.getuid?.() === 0 &&
    (spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0 ||
      (spawnSync('apt-get', ['update', '-qq'], options).status === 0 &&
        spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0));
  if (!installed) console.log(`Not installed: ${names.join(', ')}; tests that need them are skipped.`);
}
