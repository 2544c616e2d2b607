// What npm run test:all may install on the machine: Debian packages that optional measures use.
import { spawnSync } from 'node:child_process';

const packages = { nft: 'nftables' };

/** Installs missing system packages where apt and root are at hand; says what stays missing. */
export function prepareSystem() {
  const missing = Object.entries(packages).filter(
    ([command]) => spawnSync('sh', ['-c', `command -v ${command}`]).status !== 0,
  );
  if (missing.length === 0) return;
  const names = missing.map(([, name]) => name);
  const options = { stdio: 'ignore', timeout: 300_000, env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  const installed =
    process.getuid?.() === 0 &&
    (spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0 ||
      (spawnSync('apt-get', ['update', '-qq'], options).status === 0 &&
        spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], options).status === 0));
  if (!installed) console.log(`Not installed: ${names.join(', ')}; tests that need them are skipped.`);
}
