import { copyFile, lstat, mkdir, readdir, readFile, readlink, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { removeTree } from '../../host/trees.js';
import type { Bind } from '../runtime-launch.js';
import type { Words } from './launcher.js';

/** User and group inside every sandbox. */
export const innerId = 1000;

const systemFolders = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix'];
const devices = ['null', 'full', 'random', 'urandom'];
const copiedFiles = [
  'ld.so.cache',
  'localtime',
  'services',
  'protocols',
  'mime.types',
  'os-release',
  'timezone',
  'ssl/openssl.cnf',
];
const boundFolders = ['alternatives', 'php', 'ssl/certs', 'pki/tls/certs', 'pki/ca-trust/extracted', 'fonts'];
const systemdResolv = '/run/systemd/resolve/resolv.conf';

/** The part of the host that all its sandboxes see, and its folder. */
export interface HostView {
  /**
   * Words of a launcher's spec: the system's folders, /etc, /dev and /proc. With `freshProc` false the host's /proc is
   * bound. `zero`: whether there is a /dev/zero, from which shared memory can be mapped.
   */
  words(options: { freshProc: boolean; zero: boolean }): Words;
}

const pageBytes = 4096;

/**
 * Words of a launcher's spec: a file system in memory that counts against the sandbox's memory. It has one inode per page,
 * so that the number of empty files and folders is bounded, too.
 */
export function tmpfsWords(path: string, bytes: number, owner: 'own' | 'shared'): Words {
  return ['tmpfs', path, String(bytes), String(Math.ceil(bytes / pageBytes)), owner];
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

async function systemWords(): Promise<Words> {
  const words: Words = [];
  for (const folder of systemFolders) {
    const found = await lstat(folder).catch(() => undefined);
    if (found?.isSymbolicLink()) words.push('link', await readlink(folder), folder);
    else if (found?.isDirectory()) words.push('bind', folder, folder, 'ro');
  }
  return words;
}

/** The host's resolvers, except those on its loopback, which sandboxes cannot reach. */
export function resolversFor(hostText: string, systemdText: string): string {
  const loopback = /^\s*nameserver\s+(127\.|::1)/;
  const lines = hostText.split('\n');
  if (!lines.some((line) => loopback.test(line))) return hostText;
  if (systemdText !== '' && !systemdText.split('\n').some((line) => loopback.test(line))) return systemdText;
  return lines.filter((line) => !loopback.test(line)).join('\n');
}

async function fillEtc(folder: string): Promise<Words> {
  await removeTree(folder);
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const read = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');
  const texts = {
    passwd: `root:x:0:0:root:/root:/usr/sbin/nologin\naction:x:${innerId}:${innerId}:action:/action:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
    group: `root:x:0:\naction:x:${innerId}:\nnogroup:x:65534:\n`,
    hosts: '127.0.0.1 localhost action\n::1 localhost\n',
    hostname: 'action\n',
    'nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n',
    'resolv.conf': resolversFor(await read('/etc/resolv.conf'), await read(systemdResolv)),
  };
  for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text);
  for (const name of copiedFiles) {
    const source = await realpath(join('/etc', name)).catch(() => undefined);
    if (source === undefined) continue;
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await copyFile(source, join(folder, name));
  }
  const words: Words = ['bind', folder, '/etc', 'ro'];
  const java = (await readdir('/etc')).filter((name) => /^java-.*-openjdk$/.test(name));
  for (const name of [...boundFolders, ...java]) {
    const source = await realpath(join('/etc', name)).catch(() => undefined);
    if (source === undefined || !(await lstat(source)).isDirectory()) continue;
    await mkdir(join(folder, name), { recursive: true });
    words.push('bind', source, join('/etc', name), 'ro');
  }
  return words;
}

/** Reads the host's system folders, and writes the /etc of the sandboxes into `etcFolder`. */
export async function prepareHostView(etcFolder: string): Promise<HostView> {
  const system = [...(await systemWords()), ...(await fillEtc(etcFolder))];
  if (await exists('/sys/devices/system')) system.push('bind', '/sys/devices/system', '/sys/devices/system', 'ro');
  const linked = [
    ['/proc/self/fd', '/dev/fd'],
    ['/proc/self/fd/0', '/dev/stdin'],
    ['/proc/self/fd/1', '/dev/stdout'],
    ['/proc/self/fd/2', '/dev/stderr'],
  ];
  const device = (name: string): Words => ['bind', `/dev/${name}`, `/dev/${name}`, 'dev'];
  const dev = devices.flatMap(device);
  dev.push(...linked.flatMap(([target = '', path = '']) => ['link', target, path]));
  return {
    words: ({ freshProc, zero }) => [
      ...system,
      ...(freshProc ? ['proc'] : ['bind', '/proc', '/proc', 'ro']),
      ...dev,
      ...(zero ? device('zero') : []),
      'link',
      '/tmp',
      '/var/tmp',
    ],
  };
}

/** Words of a launcher's spec: the binds of a runtime, and an empty mount over `hiddenFolder` if a bind would show it. */
export function bindWords(binds: readonly Bind[], hiddenFolder: string): Words {
  const isWithin = (path: string, folder: string): boolean =>
    path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
  const words = (bind: Bind): Words => ['bind', bind.source, bind.target, bind.mode ?? 'ro'];
  // Parts of the hidden folder that a runtime needs (packages) are mounted over the empty one.
  const below = binds.filter((bind) => isWithin(bind.source, hiddenFolder));
  const others = binds.filter((bind) => !isWithin(bind.source, hiddenFolder));
  const showing = [...systemFolders.map((path) => ({ source: path, target: path })), ...others].filter(
    (bind) => bind.source !== hiddenFolder && isWithin(hiddenFolder, bind.source),
  );
  const masks = showing.map((bind) => join(bind.target, hiddenFolder.slice(bind.source.length)));
  return [...others.flatMap(words), ...masks.flatMap((path) => ['mask', path]), ...below.flatMap(words)];
}
