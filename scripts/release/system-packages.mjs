// Packages of Debian and of RPM, by nfpm.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';
import { changesOf } from './changelog.mjs';
import { run } from './run.mjs';

const nfpmVersion = 'v2.43.4';
const files = join(import.meta.dirname, 'files');
const installed = '/usr/lib/gpuwhisk/release';
/** What the programs are linked with: Node.js, and native parts that are built on Debian 12. */
const libraries = {
  deb: ['libc6 (>= 2.36)', 'libgcc-s1', 'libstdc++6'],
  rpm: ['glibc >= 2.36', 'libgcc', 'libstdc++'],
};

/** The path of nfpm, which Go builds once into build/. */
function nfpm() {
  const program = join(root, 'build', 'nfpm', nfpmVersion, 'nfpm');
  if (!existsSync(program)) {
    const env = { ...process.env, GOBIN: join(program, '..') };
    run('go', ['install', `github.com/goreleaser/nfpm/v2/cmd/nfpm@${nfpmVersion}`], { env });
  }
  return program;
}

const atLink = (name) => ({ src: `/usr/lib/gpuwhisk/current/bin/${name}`, dst: `/usr/bin/${name}`, type: 'symlink' });
const unit = (name) => ({ src: join(files, name), dst: `/usr/lib/systemd/system/${name}`, file_info: { mode: 0o644 } });

function configOf(folder, { version, arch, notes }) {
  const scripts = {
    postinstall: join(files, 'after-install.sh'),
    preremove: join(files, 'before-removal.sh'),
    postremove: join(files, 'after-removal.sh'),
  };
  const config = { src: join(files, 'gpuwhisk.json'), dst: '/etc/gpuwhisk/gpuwhisk.json', type: 'config|noreplace' };
  return {
    name: 'gpuwhisk',
    arch,
    platform: 'linux',
    version,
    release: '1',
    section: 'net',
    priority: 'optional',
    maintainer: 'The gpuwhisk maintainers <maintainers@gpuwhisk.invalid>',
    vendor: 'gpuwhisk',
    license: 'Apache-2.0',
    description:
      "Serverless platform for GPU servers with OpenWhisk's API\nThe server of one machine, its client wsk, and Node.js for both.",
    contents: [
      { src: folder, dst: installed, type: 'tree' },
      { ...config, file_info: { mode: 0o640 } },
      { dst: '/etc/gpuwhisk', type: 'dir', file_info: { mode: 0o755 } },
      unit('gpuwhisk.service'),
      unit('gpuwhisk.socket'),
      ...['gpuwhisk', 'wsk', 'wskadmin'].map(atLink),
      { src: join(folder, 'LICENSE'), dst: '/usr/share/doc/gpuwhisk/copyright' },
      { src: notes, dst: '/usr/share/doc/gpuwhisk/NEWS.md' },
    ],
    scripts,
    overrides: Object.fromEntries(
      Object.entries(libraries).map(([kind, depends]) => [
        kind,
        {
          depends,
          recommends: ['nftables', 'python3'],
          scripts: kind === 'deb' ? { ...scripts, preinstall: join(files, 'before-install.sh') } : scripts,
        },
      ]),
    ),
  };
}

/**
 * Packs a laid-out release as .deb and .rpm into `out`. `arch` is Debian's name of the processor. Returns the paths. Throws an
 * Error with the program's complaint.
 */
export function packSystemPackages(folder, { version, arch, out, scratch }) {
  const config = join(scratch, 'nfpm.yaml');
  const notes = join(scratch, 'NEWS.md');
  writeFileSync(notes, `# gpuwhisk ${version}\n\n${changesOf(version)}\n`);
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(configOf(folder, { version, arch, notes })));
  return ['deb', 'rpm'].map((packager) => {
    const told = run(nfpm(), ['package', '--config', config, '--packager', packager, '--target', out]);
    const path = /created package: (\S+)/.exec(told)?.[1];
    if (path === undefined) throw new Error(`nfpm named no package: ${told}`);
    return path;
  });
}
