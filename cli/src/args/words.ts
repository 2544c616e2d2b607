import { globalFlags, helpFlag, versionFlag, type FlagSpec } from './flags.js';

/** The words that are neither flags nor their values, as far as one can tell before the command is known. */
export function commandWords(words: string[]): string[] {
  const found: string[] = [];
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (word === '--') break;
    if (takesNextWord(word)) index++;
    else if (word !== '' && !word.startsWith('-')) found.push(word);
  }
  return found;
}

function takesNextWord(word: string): boolean {
  const isSwitch = (test: (flag: FlagSpec) => boolean): boolean =>
    [...globalFlags, helpFlag(''), versionFlag].some((flag) => flag.type === 'bool' && test(flag));
  if (word.startsWith('--')) return !word.includes('=') && !isSwitch(({ name }) => name === word.slice(2));
  return /^-[^-]$/.test(word) && !isSwitch(({ short }) => short === word[1]);
}

/** `words` less the first `taken` that is no flag's value. */
export function without(words: string[], taken: string): string[] {
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (takesNextWord(word)) index++;
    else if (word === taken) return [...words.slice(0, index), ...words.slice(index + 1)];
  }
  return words;
}

/** How many letters must be added, dropped or changed to make one word of the other (Levenshtein). */
export function distance(a: string, b: string): number {
  let row = [...b, ''].map((_, index) => index);
  [...a].forEach((letter, index) => {
    const next = [index + 1];
    [...b].forEach((other, column) => {
      const changed = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(changed, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    });
    row = next;
  });
  return row[b.length] ?? 0;
}
