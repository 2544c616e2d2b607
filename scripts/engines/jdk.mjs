// JDK 21 for tests of the Java runtime, from Debian 13's packages. They come with that release's C library, as Debian 12 has an
// older one than they need. Takes apt, dpkg, patchelf and, once, the network.
import { spawnSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { succeeds } from './quiet.mjs';

const name = 'java-21-openjdk-amd64';
/** Where the JDK lies, once it is installed. The path stands in its programs. */
export const jdkFolder = fileURLToPath(new URL('../../node_modules/.cache/jdk-21', import.meta.url));
const packages = ['openjdk-21-jdk-headless', 'openjdk-21-jre-headless', 'libc6'];
const suite = 'trixie';
const timeout = 300_000;

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

/** Whether the JDK is there. */
export const hasJdk = () => existsSync(join(jdkFolder, 'release'));

/** Brings the JDK, once. Resolves with why that is not possible; undefined: it is there. */
export async function installJdk() {
  if (hasJdk()) return undefined;
  if (process.arch !== 'x64') return 'it is brought for x86-64 only';
  const missing = ['apt-get', 'dpkg-deb', 'patchelf'].find((command) => !has(command));
  if (missing !== undefined) return `there is no ${missing}`;
  const mirror = mirrorOf(readSources());
  if (mirror === undefined) return 'apt has no mirror of Debian';
  const partial = `${jdkFolder}.${process.pid}`;
  try {
    if (!(await download(mirror, partial))) return "Debian 13's packages could not be fetched";
    const why = await layOut(partial);
    if (why !== undefined) return why;
    if (!hasJdk()) renameSync(join(partial, 'jdk'), jdkFolder);
    return undefined;
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

function readSources() {
  const folder = '/etc/apt/sources.list.d';
  const files = [
    '/etc/apt/sources.list',
    ...(existsSync(folder) ? readdirSync(folder).map((file) => join(folder, file)) : []),
  ];
  return files.filter((file) => existsSync(file)).map((file) => readFileSync(file, 'utf8'));
}

/** The first mirror of Debian in sources of apt. */
function mirrorOf(sources) {
  return /^(?:deb .*?|URIs: *)(https?:\/\/\S+\/debian)\/?(?:\s|$)/m.exec(sources.join('\n'))?.[1];
}

/** Has apt fetch the packages into `folder`/archives, with lists of its own: the machine's stay as they are. */
async function download(mirror, folder) {
  const at = (path) => join(folder, path);
  for (const path of ['lists/partial', 'archives/partial']) mkdirSync(at(path), { recursive: true });
  const key = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(at('sources.list'), `deb [signed-by=${key}] ${mirror} ${suite} main\n`);
  writeFileSync(at('status'), '');
  const settings = {
    'Dir::Etc::sourcelist': at('sources.list'),
    'Dir::Etc::sourceparts': '-',
    'Dir::State::lists': at('lists'),
    'Dir::State::status': at('status'),
    'Dir::Cache': folder,
    'APT::Sandbox::User': 'root',
  };
  const options = Object.entries(settings).flatMap(([setting, value]) => ['-o', `${setting}=${value}`]);
  const cwd = at('archives');
  return (
    (await succeeds('apt-get', [...options, 'update'], { timeout, cwd })) &&
    (await succeeds('apt-get', [...options, 'download', ...packages], { timeout, cwd }))
  );
}

/** Lays out the JDK in `folder`/jdk: with its settings in place of links to /etc, and programs that use the C library beside them. */
async function layOut(folder) {
  const system = join(folder, 'system');
  for (const file of readdirSync(join(folder, 'archives')).filter((each) => each.endsWith('.deb'))) {
    const isUnpacked = await succeeds('dpkg-deb', ['-x', join(folder, 'archives', file), system], { timeout });
    if (!isUnpacked) return `${file} could not be unpacked`;
  }
  const jdk = join(folder, 'jdk');
  cpSync(join(system, 'usr', 'lib', 'jvm', name), jdk, { recursive: true, verbatimSymlinks: true });
  for (const entry of readdirSync(jdk, { recursive: true })) {
    const path = join(jdk, entry);
    const target = lstatSync(path).isSymbolicLink() ? readlinkSync(path) : '';
    if (!target.startsWith('/etc/java-21-openjdk/')) continue;
    rmSync(path);
    copyFileSync(join(system, target), path);
  }
  const library = join(system, 'usr', 'lib', 'x86_64-linux-gnu');
  const own = join('lib', 'glibc');
  mkdirSync(join(jdk, own));
  for (const file of readdirSync(library)) {
    if (/^(ld-linux|lib(c|m|dl|pthread|rt|resolv|nss_\w+)\.so)/.test(file))
      copyFileSync(join(library, file), join(jdk, own, file));
  }
  const programs = readdirSync(join(jdk, 'bin'), { withFileTypes: true }).filter((entry) => entry.isFile());
  const interpreter = join(jdkFolder, own, 'ld-linux-x86-64.so.2');
  const words = ['--set-interpreter', interpreter, '--force-rpath', '--set-rpath', `$ORIGIN/../${own}:$ORIGIN/../lib`];
  const isPatched = await succeeds('patchelf', [...words, ...programs.map((entry) => join(jdk, 'bin', entry.name))], {
    timeout,
  });
  return isPatched ? undefined : 'patchelf could not change its programs';
}
