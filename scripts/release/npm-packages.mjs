// npm packages: the platform, which `npx gpuwhisk serve` starts, and types for actions.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { root } from '../fresh.mjs';
import { layOutRelease, manifest, packages } from './layout.mjs';

/** The dependencies of our packages, in the versions that this clone has installed. */
function dependenciesOfPackages() {
  const found = {};
  for (const name of packages) {
    const { dependencies = {} } = JSON.parse(readFileSync(join(root, name, 'package.json'), 'utf8'));
    for (const other of Object.keys(dependencies).filter((one) => !one.startsWith('@gpuwhisk/'))) {
      const own = join(root, 'node_modules', other, 'package.json');
      found[other] = JSON.parse(readFileSync(own, 'utf8')).version;
    }
  }
  return found;
}

/** npm packs no links: modules name those of our other packages by their paths. */
function nameByPaths(folder) {
  for (const name of packages) {
    const dist = join(folder, name, 'dist');
    for (const path of readdirSync(dist, { recursive: true }).filter((file) => file.endsWith('.js'))) {
      const file = join(dist, path);
      const text = readFileSync(file, 'utf8');
      const named = text.replace(/(['"])@gpuwhisk\/([a-z]+)\/([\w/.-]+)\1/g, (_, quote, other, module) => {
        const target = relative(dirname(file), join(folder, other, 'dist', `${module}.js`));
        return `${quote}${target.startsWith('.') ? target : `./${target}`}${quote}`;
      });
      if (named !== text) writeFileSync(file, named);
    }
  }
}

const about = (version, more) => ({
  version,
  license: manifest.license,
  ...more,
});

function pack(folder, out, tar) {
  const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = join(out, `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`);
  tar(file, folder, 'package');
  return file;
}

/**
 * Packs both npm packages into `out`: of a release for this processor without Node.js, and, from `other`, folders of native parts
 * by Node.js's names of other processors. `tar(file, folder, name)` writes an archive. Returns the paths.
 */
export async function packNpmPackages({ version, out, scratch, tar }) {
  const folder = join(scratch, 'npm');
  await layOutRelease(folder, { site: false, version });
  rmSync(join(folder, 'node_modules'), { recursive: true });
  // npm leaves out dependencies' folders below the first; the invoker installs these packages at the first start.
  rmSync(join(folder, 'build', 'packages'), { recursive: true, force: true });
  nameByPaths(folder);
  const platform = {
    name: 'gpuwhisk',
    ...about(version, { description: manifest.description, type: 'module', engines: manifest.engines }),
    os: ['linux'],
    cpu: [process.arch],
    bin: { gpuwhisk: 'bin/gpuwhisk', wsk: 'bin/wsk', wskadmin: 'bin/wskadmin' },
    dependencies: dependenciesOfPackages(),
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(platform, null, 2)}\n`);

  const types = join(scratch, 'types');
  mkdirSync(types);
  cpSync(join(root, 'cli', 'schemas', 'gpuwhisk.d.ts'), join(types, 'index.d.ts'));
  cpSync(join(root, 'LICENSE'), join(types, 'LICENSE'));
  const typed = {
    name: 'gpuwhisk-types',
    ...about(version, { description: 'TypeScript types for actions of gpuwhisk', types: 'index.d.ts' }),
  };
  writeFileSync(join(types, 'package.json'), `${JSON.stringify(typed, null, 2)}\n`);
  return [pack(folder, out, tar), pack(types, out, tar)];
}
