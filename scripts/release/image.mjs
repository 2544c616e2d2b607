// The file system of a container image, for `docker import`: a release and the Debian packages that it needs, of any processor.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './run.mjs';

const suite = 'bookworm';
/** With what these depend on. By nft functions get their network, by certificates they trust servers, by pip Python's get packages. */
const wanted = ['base-files', 'base-passwd', 'ca-certificates', 'coreutils', 'dash', 'libc-bin', 'libstdc++6'];
const forFunctions = ['iproute2', 'nftables', 'python3', 'python3-pip'];

/**
 * The address of a mirror: DEBIAN_MIRROR, or the one from which this machine gets the suite. Throws an Error that says what to set.
 */
function mirrorAddress() {
  if (process.env.DEBIAN_MIRROR) return process.env.DEBIAN_MIRROR;
  const words = ['indextargets', '--format', '$(REPO_URI)', `Codename: ${suite}`, 'Component: main'];
  const [address] = run('apt-get', words).split('\n');
  if (address) return address;
  throw new Error(`apt has no mirror of Debian ${suite} here: set DEBIAN_MIRROR to the address of one.`);
}

/** Downloads Debian packages of a processor with their dependencies into a folder; returns their paths. Throws an Error with apt's complaint. */
export function download(arch, scratch, packages) {
  const at = (name) => join(scratch, 'apt', name);
  for (const name of ['lists/partial', 'archives/partial', 'state', 'etc/preferences.d', 'etc/apt.conf.d'])
    mkdirSync(at(name), { recursive: true });
  writeFileSync(at('status'), '');
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';
  writeFileSync(at('etc/sources.list'), `deb [signed-by=${keys}] ${mirrorAddress()} ${suite} main\n`);
  const options = {
    'APT::Architecture': arch,
    'APT::Architectures': arch,
    'APT::Install-Recommends': 'false',
    'APT::Sandbox::User': 'root',
    'Dir::State': at('state'),
    'Dir::State::status': at('status'),
    'Dir::State::lists': at('lists'),
    'Dir::Cache': at('.'),
    'Dir::Cache::archives': at('archives'),
    'Dir::Etc': at('etc'),
    'Acquire::http::Timeout': '60',
    'Debug::NoLocking': 'true',
  };
  const words = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  run('apt-get', [...words, 'update']);
  run('apt-get', [...words, 'install', '--yes', '--download-only', ...packages]);
  const names = readdirSync(at('archives')).filter((name) => name.endsWith('.deb'));
  return names.map((name) => at(`archives/${name}`));
}

/**
 * Makes the file system of an image in a new folder below `scratch`, from a laid-out release and Debian's packages for `arch`, Debian's
 * name of the processor; returns its path. Needs apt and dpkg. Throws an Error with a program's complaint.
 */
export function layOutImage(release, { arch, scratch }) {
  const folder = join(scratch, 'image');
  for (const name of ['bin', 'lib', 'sbin', ...(arch === 'amd64' ? ['lib64'] : [])]) {
    mkdirSync(join(folder, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(folder, name));
  }
  for (const path of download(arch, scratch, [...wanted, ...forFunctions])) {
    const unpack = 'dpkg-deb --fsys-tarfile "$0" | tar -x --keep-directory-symlink -C "$1"';
    run('sh', ['-c', unpack, path, folder]);
  }
  rmSync(join(scratch, 'apt'), { recursive: true });
  // What the packages' scripts would make.
  for (const name of ['passwd', 'group']) {
    cpSync(join(folder, 'usr/share/base-passwd', `${name}.master`), join(folder, 'etc', name));
  }
  const authorities = join(folder, 'usr/share/ca-certificates/mozilla');
  const certificates = readdirSync(authorities).map((name) => readFileSync(join(authorities, name), 'utf8'));
  writeFileSync(join(folder, 'etc/ssl/certs/ca-certificates.crt'), certificates.join(''));
  for (const name of ['doc', 'locale', 'man'])
    rmSync(join(folder, 'usr/share', name), { recursive: true, force: true });
  mkdirSync(join(folder, 'opt'), { recursive: true });
  cpSync(release, join(folder, 'opt', 'gpuwhisk'), { recursive: true, verbatimSymlinks: true });
  for (const name of ['gpuwhisk', 'wsk', 'wskadmin'])
    symlinkSync(`/opt/gpuwhisk/bin/${name}`, join(folder, 'usr', 'bin', name));
  return folder;
}
