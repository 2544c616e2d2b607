// Words that comments and documents avoid: archaic or vague ones, which readers have to read twice.
//
//   node scripts/lint-words.mjs [PATH]...
//
// Prints each word with its place and a replacement, and exits with 1 if there is any. Part of npm run lint and npm
// test.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { root } from './fresh.mjs';

/** Expressions, and their replacements. */
const avoided = [
  [/\bnobody\b/i, "no and a noun: 'no client', 'no task'"],
  [/\bsomebody\b/i, "the noun: 'a client', 'a waiting task'"],
  [/\bwhoever\b/i, "the noun: 'a caller that'"],
  [/\bwhom\b/i, 'a sentence with that noun as its subject'],
  [/\banew\b/i, "'again', or 'new'"],
  [/\bever more\b/i, "'more and more', or the growth"],
  [/\bin vain\b/i, "'without success', or the result"],
  [/\bof late\b/i, "'recently', or the time"],
  [/\bthereby\b/i, 'a sentence of its own'],
  [/\bhitherto\b/i, "'until now'"],
  [/\bstrangers\b/i, 'the noun: unknown processes, other namespaces'],
  [/\bheed(s|ed|ing)?\b/i, "'follow', 'apply'"],
  [/\bearlier life\b/i, "'before the restart'"],
  [/\bnext life\b/i, "'the next start'"],
  [/\bis no more\b(?! than)/i, "'has ended', 'is deleted'"],
  [/\bwhat [^.,;:]{1,40} (is|are) made of\b/i, "'parts of', 'dependencies of'"],
  [/\bas it were\b/i, 'nothing'],
];

const skippedFolders = new Set(['node_modules', 'dist', 'build', 'target', '__pycache__', 'results', 'papers']);
const slashed = new Set(
  ['.ts', '.js', '.mjs', '.cjs', '.c', '.cpp', '.h', '.S', '.java', '.go', '.php', '.map', '.def'].values(),
);
const hashed = new Set(['.py', '.rb', '.sh', '.yml', '.yaml', '.conf', '.cfg']);

/** The text with everything but comments blanked; line breaks stay. */
function commentsOf(text, extension) {
  if (extension === '.md') return markdownProse(text);
  if (hashed.has(extension)) return text.replace(/^(.*?)(#.*)?$/gm, (_, code, comment = '') => blank(code) + comment);
  return slashComments(text);
}

const blank = (text) => text.replace(/[^\n]/g, ' ');

/** Documents without code (fenced blocks, inline code) and without names of tests. */
function markdownProse(text) {
  return text
    .replace(/^```[^]*?^```/gm, blank)
    .replace(/`[^`\n]*`/g, blank)
    .replace(/\[[^\]\n]*"[^"\n]*"\]/g, blank);
}

/** Tokens that may contain slashes, then comments. A regular expression stands where a value may begin. */
const token =
  /\/\/[^\n]*|\/\*[^]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[^]|[^`\\])*`|(?<=(?:^|[(,=:[!&|?{};+]|=>|return)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/gm;

function slashComments(text) {
  let result = '';
  let last = 0;
  for (const match of text.matchAll(token)) {
    const [found] = match;
    result += blank(text.slice(last, match.index)) + (/^\/[/*]/.test(found) ? found : blank(found));
    last = match.index + found.length;
  }
  return result + blank(text.slice(last));
}

function* filesIn(path) {
  if (statSync(path).isFile()) {
    const extension = extname(path);
    if (extension === '.md' || slashed.has(extension) || hashed.has(extension)) yield path;
    return;
  }
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    const isHidden = entry.name.startsWith('.') && entry.name !== '.github';
    if (isHidden || (entry.isDirectory() && skippedFolders.has(entry.name)) || entry.isSymbolicLink()) continue;
    yield* filesIn(join(path, entry.name));
  }
}

let findings = 0;
const asked = process.argv.slice(2).map((path) => join(process.cwd(), path));
for (const start of asked.length > 0 ? asked : [root]) {
  if (!existsSync(start)) throw new Error(`There is no file or folder '${start}'.`);
  for (const file of filesIn(start)) {
    // An expression may contain a line break: the search replaces it by a space, without a change of positions.
    const comments = commentsOf(readFileSync(file, 'utf8'), extname(file));
    const flat = comments.replace(/\n[ \t]*(?:\/\/|\*|#)?/g, (gap) => ' '.repeat(gap.length));
    for (const [expression, instead] of avoided) {
      for (const { 0: found, index } of flat.matchAll(new RegExp(expression, 'gi'))) {
        const line = comments.slice(0, index).split('\n').length;
        console.log(`${relative(root, file)}:${line}: '${found.replace(/\s+/g, ' ')}'; write ${instead}`);
        findings++;
      }
    }
  }
}
if (findings > 0) {
  console.error(`${findings} words to avoid in comments and documents.`);
  process.exitCode = 1;
}
