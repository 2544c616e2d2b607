import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Of } from '@gpuwhisk/common/entities/large-code';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { superfluous } from '../host/fair-cache.js';
import { partialPrefix } from '../host/partial-folders.js';

const digestBytes = 32;
/** What a program counts at least, bytes. */
const leastBytes = 8 * 1024 * 1024;

/** A program with its SHA-256 (hexadecimal). */
export interface Program {
  program: Buffer;
  digest: string;
}

/**
 * Programs that were made from actions' code for namespaces, in files of a folder: the program's SHA-256, then the program.
 * Beyond `maxBytes` the namespace with the most bytes loses its own programs, those unused longest first.
 */
export class ProgramFiles {
  constructor(
    private readonly folder: string,
    private readonly clock: Clock,
    private readonly maxBytes: number,
  ) {}

  /** The program of a name, which counts as used now; undefined if there is none, or if it does not match its digest. */
  async load(name: string): Promise<Program | undefined> {
    const file = join(this.folder, name);
    const kept = await readFile(file).catch(() => undefined);
    if (kept === undefined) return undefined;
    const program = kept.subarray(digestBytes);
    const digest = await sha256Of(this.clock, program);
    if (digest !== kept.toString('hex', 0, digestBytes)) return undefined;
    const nowSeconds = this.clock.now() / 1000;
    // Another program may have taken its room meanwhile.
    await utimes(file, nowSeconds, nowSeconds).catch(isGone);
    return { program, digest };
  }

  /** Keeps a program under a name that programName() made, and removes others beyond the bound. */
  async keep(name: string, { program, digest }: Program): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    const partial = join(this.folder, `${partialPrefix}${randomUUID()}`);
    await writeFile(partial, [Buffer.from(digest, 'hex'), program]);
    await rename(partial, join(this.folder, name));
    const names = await readdir(this.folder);
    const entries = await Promise.all(
      names.map(async (entry) => {
        // Another build may just have renamed or removed it.
        const { mtimeMs = 0, size = 0 } = (await stat(join(this.folder, entry)).catch(isGone)) ?? {};
        const bytes = size && Math.max(size, leastBytes);
        return { name: entry, owner: entry.split('.')[1] ?? '', bytes, usedMs: mtimeMs };
      }),
    );
    const removed = superfluous(entries, this.maxBytes);
    await Promise.all(removed.map((entry) => rm(join(this.folder, entry.name), { force: true })));
  }
}

/** The name of a program's file: of what it was made from, for one namespace. */
export function programName(source: readonly unknown[], namespace = ''): string {
  const [key, owner] = [JSON.stringify(source), namespace].map((text) =>
    createHash('sha256').update(text).digest('hex'),
  );
  return `${key}.${owner?.slice(0, 32)}`;
}

function isGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
