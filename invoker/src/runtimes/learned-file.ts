import { readFile, rename, stat, writeFile } from 'node:fs/promises';
import { isImportName } from '@gpuwhisk/common/entities/action-annotations';
import type { Logger } from '@gpuwhisk/common/logging';

/** What was learned for a namespace: of each set its key, times of modules (ms), and modules by action. */
export interface NamespaceRow {
  namespace: string;
  sets: readonly { key: string; modules: readonly [string, number][]; actions: readonly [string, string[]][] }[];
}

/** The file that keeps learned imports over a restart. */
export interface LearnedFile {
  /** What the file holds; nothing if it is absent, too large or not in this form, which is logged. Never rejects. */
  read(): Promise<NamespaceRow[]>;
  /** Replaces the content. Rejects if the file cannot be written. */
  write(rows: readonly NamespaceRow[]): Promise<void>;
}

const version = 1;
/** Largest file that is read, bytes: more than the bounds of learned imports allow. */
const maxBytes = 64 * 1024 * 1024;

/** On disk actions have the positions of their modules in the set's list. */
interface StoredSet {
  key: string;
  modules: [string, number][];
  actions: [string, number[]][];
}

/** Opens the file at `path`, which belongs to its owner only. */
export function learnedFile(path: string, logger: Logger): LearnedFile {
  return {
    async read() {
      try {
        if ((await stat(path)).size > maxBytes) throw new Error('it is too large');
        return rowsOf(JSON.parse(await readFile(path, 'utf8')));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
          logger.warn({ path, error: String(error) }, 'learned imports could not be read');
        return [];
      }
    },
    async write(rows) {
      await writeFile(`${path}.new`, JSON.stringify({ version, namespaces: rows.map(stored) }), { mode: 0o600 });
      await rename(`${path}.new`, path);
    },
  };
}

function stored({ namespace, sets }: NamespaceRow): { namespace: string; sets: StoredSet[] } {
  const each = sets.map(({ key, modules, actions }): StoredSet => {
    const places = new Map(modules.map(([name], at) => [name, at]));
    const placed = actions.map(([action, names]): [string, number[]] => {
      return [action, names.flatMap((name) => places.get(name) ?? [])];
    });
    return { key, modules: [...modules], actions: placed };
  });
  return { namespace, sets: each };
}

/** The rows of a file's content. Throws an Error if it has another form. */
function rowsOf(content: unknown): NamespaceRow[] {
  const { version: found, namespaces } = content as { version: unknown; namespaces: ReturnType<typeof stored>[] };
  if (found !== version) throw new Error(`it has version ${String(found)}`);
  return namespaces.map(({ namespace, sets }) => {
    const each = sets.map(({ key, modules, actions }) => {
      if (!modules.every(([name, ms]) => isImportName(name) && ms >= 0))
        throw new Error('it has a module without a name');
      const named = actions.map(([action, places]): [string, string[]] => {
        return [action, places.flatMap((at) => modules[at]?.[0] ?? [])];
      });
      return { key: String(key), modules, actions: named };
    });
    return { namespace: String(namespace), sets: each };
  });
}
