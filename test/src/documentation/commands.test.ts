// Each command of wsk and gpuwhisk that the documentation names is there, with each of its flags.
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { commandHelp, groupHelp, rootHelp } from '@gpuwhisk/cli/command';
import { commandTable } from '@gpuwhisk/cli/commands/table';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const documents = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.md'))
  .map((path) => join('docs', path))
  .concat('README.md', 'CONTRIBUTING.md', 'GUARANTEES.md');

const helpTimeoutMs = 60_000;

/** Command lines of a program in a text: in backquotes, and lines of code. */
function linesOf(program: string, text: string): string[] {
  const prose = text.replace(/^```[^]*?^```/gm, '');
  const spans = [...prose.matchAll(/`([^`]+)`/g)].map(([, span]) => span!);
  const code = [...text.matchAll(/^```\w*\n([^]*?)^```/gm)].flatMap(([, lines]) =>
    lines!.replaceAll('\\\n', ' ').split('\n'),
  );
  const begins = new RegExp(`^(\\$ )?(bin/)?${program} `);
  const lines = [...spans, ...code].filter((line) => begins.test(line) && !line.includes(' is ready at '));
  return lines.map((line) => line.replace(begins, ''));
}

/** The words of a command line; those that are optional are in brackets, and what other commands of it say is not its own. */
const wordsOf = (line: string): string[] =>
  line
    .replace(/\$\([^)]*\)/g, 'VALUE')
    .split(/ (?:[|#>&]|&&) |;/)[0]!
    .replace(/[[\]]/g, ' ')
    .split(/\s+/)
    .filter((word) => word !== '');

const flagsOf = (words: readonly string[]): string[] =>
  words.filter((word) => /^--?[a-z]/i.test(word)).map((word) => word.replace(/=.*/, ''));

/** Flags that a help does not show. */
const missingFlags = (words: readonly string[], help: string): string[] => {
  const known = new Set(help.match(/--?[a-z][\w-]*/gi));
  return flagsOf(words).filter((flag) => !known.has(flag));
};

/** Helps of the commands that a line selects: `get|list` selects two. Undefined if there is no such command. */
async function helpsOf([first = '', second = '']: readonly string[]): Promise<string[] | undefined> {
  if (first === 'help' || first.startsWith('-')) return [rootHelp(commandTable)];
  const entry = commandTable.find(({ name }) => name === first);
  const loaded = await entry?.load();
  if (entry === undefined || loaded === undefined) return undefined;
  if (!Array.isArray(loaded)) return [commandHelp(`wsk ${first}`, loaded)];
  if (!/^[a-z]/.test(second)) return [groupHelp(entry, loaded)];
  const commands = second.split(/[|/]/).map((name) => loaded.find((command) => command.name === name));
  return commands.every((command) => command !== undefined)
    ? commands.map((command) => commandHelp(`wsk ${first} ${command.name}`, command) + groupHelp(entry, loaded))
    : undefined;
}

async function wrongOnes(
  program: string,
  helps: (words: readonly string[]) => Promise<string[] | undefined>,
): Promise<{ wrong: string[]; count: number }> {
  const wrong: string[] = [];
  let count = 0;
  for (const path of documents) {
    for (const line of linesOf(program, readFileSync(join(root, path), 'utf8'))) {
      count += 1;
      const words = wordsOf(line);
      const found = await helps(words);
      if (found === undefined) wrong.push(`${path}: ${program} ${line}: no such command`);
      for (const flag of (found ?? []).flatMap((help) => missingFlags(words, help))) {
        wrong.push(`${path}: ${program} ${line}: no ${flag}`);
      }
    }
  }
  return { wrong, count };
}

test('wsk', async () => {
  const { wrong, count } = await wrongOnes('wsk', helpsOf);
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(100);
});

test('gpuwhisk', async () => {
  const helps = new Map<string, Promise<string>>();
  const program = join(root, 'bin', 'gpuwhisk');
  const helpOf = (...words: string[]): Promise<string> => {
    const key = words.join(' ');
    const known =
      helps.get(key) ??
      promisify(execFile)(process.execPath, [program, ...words, '--help'], { timeout: helpTimeoutMs }).then(
        ({ stdout }) => stdout,
      );
    helps.set(key, known);
    return known;
  };
  const all = await helpOf();
  const { wrong, count } = await wrongOnes('gpuwhisk', async ([first = '']) => {
    if (!/^[a-z]/.test(first)) return [all];
    return new RegExp(`^  ${first} `, 'm').test(all) ? [await helpOf(first)] : undefined;
  });
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(10);
});
