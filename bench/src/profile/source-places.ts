import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/** Where code is: the path of its file from the repository's root, or the name of Node's module; and a line, from 1. */
export interface SourcePlace {
  file: string;
  line: number;
}

/** The place of a function in a profile. `url` is empty for code of V8; `line` and `column` begin with 0. */
export type PlaceOf = (url: string, line: number, column: number) => SourcePlace;

/** Finds places in the repository in folder `root`: those of a bundle in the files that were bundled, by its source map. */
export function sourcePlaces(root: string): PlaceOf {
  const bundles = new Map<string, SourceMap | undefined>();
  const rootUrl = pathToFileURL(`${root}/`).href;
  return (url, line, column) => {
    if (!url.startsWith(rootUrl)) return { file: url, line: url === '' ? 0 : line + 1 };
    if (!bundles.has(url)) bundles.set(url, mapOf(url));
    const entry = bundles.get(url)?.findEntry(line, column);
    if (entry === undefined || !('originalSource' in entry)) return { file: url.slice(rootUrl.length), line: line + 1 };
    return { file: relative(root, fileURLToPath(new URL(entry.originalSource, url))), line: entry.originalLine + 1 };
  };
}

function mapOf(url: string): SourceMap | undefined {
  const file = fileURLToPath(`${url}.map`);
  return existsSync(file) ? new SourceMap(JSON.parse(readFileSync(file, 'utf8')) as SourceMapPayload) : undefined;
}
