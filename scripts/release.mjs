// npm run release -- [--only KIND[,KIND]] [--arch ARCH[,ARCH]] [--version V] [--out DIR]: makes the files of a release from this clone.
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './fresh.mjs';
import own from './own-node.cjs';
import { changesOf } from './release/changelog.mjs';
import { layOutImage } from './release/image.mjs';
import { layOutRelease, manifest } from './release/layout.mjs';
import { packNpmPackages } from './release/npm-packages.mjs';
import { run } from './release/run.mjs';
import { billOfMaterials } from './release/sbom.mjs';
import { packSystemPackages } from './release/system-packages.mjs';

/** Node.js's names of processors, by Debian's. */
const processors = { amd64: 'x64', arm64: 'arm64' };
const kinds = ['tarball', 'packages', 'image', 'npm', 'sbom'];

/** Writes an archive of a folder under a name, the same for the same files: in order, of root, with the time of the release. */
function tar(file, folder, name) {
  const seconds = process.env.SOURCE_DATE_EPOCH ?? run('git', ['log', '-1', '--format=%ct'], { cwd: root }).trim();
  const same = ['--sort=name', `--mtime=@${seconds}`, '--owner=0', '--group=0', '--numeric-owner', '--format=gnu'];
  const from = ['-C', dirname(folder), `--transform=flags=rh;s,^${basename(folder)},${name},`, basename(folder)];
  run('sh', ['-c', 'file=$1; shift; tar -c "$@" | gzip -n -6 > "$file"', 'sh', file, ...same, ...from]);
}

function chosen(given, known, what) {
  const names = given?.split(',') ?? known;
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`There is no ${what} '${unknown}'; there are ${known.join(', ')}.`);
  return names;
}

function options() {
  const string = { type: 'string' };
  const { values } = parseArgs({ options: { only: string, arch: string, version: string, out: string } });
  const { version = manifest.version } = values;
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`A version has three numbers, not '${version}'.`);
  return {
    version,
    only: chosen(values.only, kinds, 'kind'),
    archs: chosen(values.arch, Object.keys(processors), 'processor'),
    out: resolve(values.out ?? join(root, 'build', 'release')),
  };
}

/** Makes the files of one processor; returns their paths. */
async function makeFor(arch, { version, only, out }, scratch) {
  if (!['tarball', 'packages', 'image'].some((kind) => only.includes(kind))) return [];
  const folder = join(scratch, 'release');
  await layOutRelease(folder, { version, arch: processors[arch], node: own.ownNode('linux', processors[arch]) });
  const made = [];
  if (only.includes('tarball')) {
    made.push(join(out, `gpuwhisk-${version}-linux-${arch}.tar.gz`));
    tar(made.at(-1), folder, `gpuwhisk-${version}`);
  }
  if (only.includes('packages')) made.push(...packSystemPackages(folder, { version, arch, out, scratch }));
  if (only.includes('image')) {
    made.push(join(out, `gpuwhisk-${version}-${arch}.image.tar.gz`));
    tar(made.at(-1), layOutImage(folder, { arch, scratch }), '.');
    cpSync(join(root, 'docker', 'compose.single.yaml'), join(out, 'compose.single.yaml'));
  }
  return made;
}

async function withScratch(work) {
  const scratch = mkdtempSync(join(tmpdir(), 'gpuwhisk-release-'));
  try {
    return await work(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function makeAll(asked) {
  const { version, only, archs, out } = asked;
  const changes = changesOf(version);
  mkdirSync(out, { recursive: true });
  const made = [];
  for (const arch of archs) made.push(...(await withScratch((scratch) => makeFor(arch, asked, scratch))));
  if (only.includes('npm'))
    made.push(...(await withScratch((scratch) => packNpmPackages({ version, out, scratch, tar }))));
  if (only.includes('sbom')) {
    made.push(join(out, `gpuwhisk-${version}.cdx.json`));
    writeFileSync(made.at(-1), billOfMaterials(version));
  }
  writeFileSync(join(out, 'CHANGES.md'), `# gpuwhisk ${version}\n\n${changes}\n`);
  const sums = 'SHA256SUMS';
  const digest = (name) =>
    createHash('sha256')
      .update(readFileSync(join(out, name)))
      .digest('hex');
  const names = readdirSync(out)
    .filter((name) => name !== sums)
    .sort();
  writeFileSync(join(out, sums), names.map((name) => `${digest(name)}  ${name}\n`).join(''));
  return made;
}

try {
  for (const path of await makeAll(options())) console.log(path);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
