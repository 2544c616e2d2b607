import { readFile, writeFile } from 'node:fs/promises';

const begin = '<!-- results of npm run bench -- faashare: written by it, not by hand -->';
const end = '<!-- end of results -->';

/** Puts `text` between the marks of a document. Throws Error where it has none. */
export function withResults(document: string, text: string): string {
  const from = document.indexOf(begin);
  const to = document.indexOf(end);
  if (from < 0 || to < from) throw new Error(`the document lacks the lines '${begin}' and '${end}'`);
  return `${document.slice(0, from + begin.length)}\n\n${text}\n\n${document.slice(to)}`;
}

/** Writes `text` between the marks of the file. */
export async function writeResults(path: string, text: string): Promise<void> {
  await writeFile(path, withResults(await readFile(path, 'utf8'), text));
}
