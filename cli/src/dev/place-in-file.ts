// Places in the developer's files that error messages of runtimes mean.
import { relative } from 'node:path';

/** A place in a file; the file as seen from the working folder. */
export interface Place {
  file: string;
  line: number;
}

/** Paths that runtimes give the code of a single file: Node.js and Python, and Python's of archives. */
const single = /(?:[\w./-]*\/)?(?:index\.m?[jt]s|main__\.py|exec__\.py)/;
/** `path:3`, `path:3:7`, `File "path", line 3`. */
const places = /(?:File "([^"]+)", line (\d+)|(?:file:\/\/)?((?:\/[\w.@-]+)+\.\w+):(\d+))/g;

/** The names by which messages call the file, and what its own name is. */
export interface Sources {
  /** The file, or the folder. */
  path: string;
  isFolder: boolean;
  /** Names of the files of the folder, relative to it. */
  files: readonly string[];
  /** Whether messages call the file by its own path. */
  isOwn?: boolean;
}

/**
 * The first place in the developer's code that a text names, the last of a Python traceback; undefined if there is none.
 */
export function placeIn(text: string, sources: Sources): Place | undefined {
  const found = [...text.matchAll(places)].flatMap(([, quoted, quotedLine, plain, plainLine]) => {
    const file = fileOf(quoted ?? plain ?? '', sources);
    return file === undefined ? [] : [{ file, line: Number(quotedLine ?? plainLine), isLast: quoted !== undefined }];
  });
  const place = found[0]?.isLast === true ? found.at(-1) : found[0];
  return place && { file: place.file, line: place.line };
}

/** A text in which the runtime's paths of the code are replaced by the developer's. */
export function withOwnPaths(text: string, sources: Sources): string {
  return text.replace(places, (whole, quoted?: string, quotedLine?: string, plain?: string, plainLine?: string) => {
    const file = fileOf(quoted ?? plain ?? '', sources);
    if (file === undefined) return whole;
    return quoted === undefined ? `${file}:${plainLine}` : `File "${file}", line ${quotedLine}`;
  });
}

/** The developer's file that a path of the runtime stands for. */
function fileOf(path: string, { path: own, isFolder, files, isOwn }: Sources): string | undefined {
  if (isOwn === true && !isFolder) return path === own ? shown(own) : undefined;
  if (!isFolder) return new RegExp(`^${single.source}$`).test(path) ? shown(own) : undefined;
  const file = files
    .filter((name) => path === name || path.endsWith(`/${name}`))
    .sort((a, b) => b.length - a.length)[0];
  if (file !== undefined) return shown(`${own}/${file}`);
  // Python runs an archive's __main__.py by another name.
  return /\/main__\.py$/.test(path) && files.includes('__main__.py') ? shown(`${own}/__main__.py`) : undefined;
}

function shown(path: string): string {
  const near = relative(process.cwd(), path);
  return near.startsWith('..') ? path : near;
}
