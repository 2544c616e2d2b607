// Loads the modules of `gpu.policyModules` when a process starts.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import { registerModules } from '@gpuwhisk/gpu/policies/policy-modules';
import type { ModuleSource } from '@gpuwhisk/gpu/policies/policy-modules';
import { tokenPolicies } from '@gpuwhisk/gpu/tokens/token-policies';
import { importModule } from './import-module.js';

/** Most bytes of a module. */
const maxBytes = 1024 * 1024;
/** Time that a module may take to load, ms. */
const loadMs = 10_000;
/** Bits of a file's mode: of a folder, only a file's owner may replace it; groups or others may write. */
const [sticky, writableByOthers] = [0o1000, 0o022];

/**
 * Registers the policies, stages and token policies of the configured modules in this process. Throws ConfigError, of one line,
 * for a module that others than root and this process's user may change, that does not load or is not valid, and for a token
 * policy that there is not.
 */
export async function loadPolicyModules({
  policyModules: paths,
  tokens,
}: Pick<Config['gpu'], 'policyModules' | 'tokens'>): Promise<void> {
  try {
    const sources: ModuleSource[] = [];
    for (const path of paths) {
      const source = await readSource(path);
      const twin = sources.find(({ sha256 }) => sha256 === source.sha256);
      if (twin !== undefined) throw new RangeError(`${path}: it is the same module as ${twin.path}`);
      sources.push(source);
    }
    await registerModules(sources, within);
  } catch (error) {
    throw new ConfigError(`gpu.policyModules: ${(error as Error).message}`, { cause: error });
  }
  if (typeof tokens !== 'string' || Object.hasOwn(tokenPolicies, tokens)) return;
  const there = Object.keys(tokenPolicies).join(', ');
  throw new ConfigError(`gpu.tokens: there is no token policy '${tokens}'; there are ${there}`);
}

/** Imports a module; one whose top level waits for something that does not come is given up. */
async function within(address: string): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new RangeError(`it does not load within ${loadMs / 1000} s`)), loadMs);
  });
  try {
    return await Promise.race([importModule(address), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The text of a module. Rejects with RangeError for a file that is none, or that others may change. */
async function readSource(given: string): Promise<ModuleSource> {
  const path = await realpath(given).catch((error: NodeJS.ErrnoException) => {
    throw new RangeError(`${given}: it cannot be read: ${error.code ?? error.message}`);
  });
  // Who may change a link's folder chooses what is loaded.
  for (const folder of new Set([...foldersOf(path), ...foldersOf(resolve(given))])) {
    const { uid, mode } = await stat(folder);
    // In a folder with the sticky bit, such as /tmp, others cannot replace a file that is not theirs.
    checkOwner(given, folder, uid, (mode & sticky) === 0 ? mode : 0);
  }
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      throw new RangeError(`${given}: it cannot be read: ${error.code ?? error.message}`);
    },
  );
  try {
    const { uid, mode, size } = await file.stat();
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) throw new RangeError(`${given}: it is no file`);
    checkOwner(given, path, uid, mode);
    if (size > maxBytes) throw new RangeError(`${given}: it has ${size} bytes, and at most ${maxBytes} are read`);
    const text = (await file.readFile()).subarray(0, maxBytes).toString('utf8');
    return { path, sha256: createHash('sha256').update(text).digest('hex'), text };
  } finally {
    await file.close();
  }
}

/** The folders above a path. */
function foldersOf(path: string): string[] {
  const above = dirname(path);
  return above === path ? [] : [above, ...foldersOf(above)];
}

/** Throws RangeError if others than root and this process's user own a file or folder, or may write to it. */
function checkOwner(module: string, path: string, uid: number, mode: number): void {
  const own = process.getuid?.() ?? 0;
  const what = path === module ? 'it' : path;
  if (uid !== 0 && uid !== own) {
    throw new RangeError(`${module}: ${what} belongs to user ${uid}, and must to root or user ${own}`);
  }
  if ((mode & writableByOthers) !== 0)
    throw new RangeError(`${module}: ${what} can be written by others: chmod go-w ${path}`);
}
