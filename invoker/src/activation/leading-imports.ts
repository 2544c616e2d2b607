const identifier = '[A-Za-z_]\\w*';
const alias = `(?:\\s+as\\s+${identifier})?`;
const moduleItem = new RegExp(`^(${identifier}(?:\\.${identifier})*)${alias}$`);
const nameItem = new RegExp(`^(${identifier})${alias}$`);
const plainImport = /^import\s+(.+)$/;
const fromImport = /^from\s+(\S+)\s+import\b\s*(.+)$/;
/** Longest statement that is read, in characters. */
const maxLineLength = 1000;
/** Words of code that may import a module later, or change which one is found. */
const laterImport = /\bimport\b|__import__|importlib|\bexec\b|\beval\b|runpy|pkgutil|\bsys\s*\.\s*modules\b/;

/**
 * The modules that Python source imports, if it imports all of them before any other statement: then it makes no difference
 * whether they, or others, have been loaded before. Undefined if that is not sure. Names of `from` imports, which may be
 * modules or not, come as modules, too.
 */
export function leadingImports(source: string): string[] | undefined {
  const lines = withoutDocstring(source.replace(/\r\n?/g, '\n')).split('\n');
  const names = new Set<string>();
  let at = 0;
  for (; at < lines.length; at++) {
    let line = lines[at] ?? '';
    const first = at;
    if (/^\s*(#.*)?$/.test(line)) continue;
    if (opensList(line)) {
      do at++;
      while (at < lines.length && lines[at]?.includes(')') !== true);
      if (at === lines.length) return undefined;
      line = lines
        .slice(first, at + 1)
        .map(withoutComment)
        .join(' ');
    }
    const found = line.length > maxLineLength ? undefined : importsOf(line);
    if (found === undefined) {
      at = first;
      break;
    }
    for (const name of found) names.add(name);
  }
  return laterImport.test(lines.slice(at).join('\n')) ? undefined : [...names];
}

/** Whether a line begins a list of names that goes on in the next one. */
function opensList(line: string): boolean {
  const open = line.lastIndexOf('(');
  return open >= 0 && /^from\s/.test(line) && !line.includes(')', open) && !line.includes('#');
}

/** In an import statement a `#` is in no string. */
function withoutComment(line: string): string {
  const at = line.indexOf('#');
  return at < 0 ? line : line.slice(0, at);
}

/** The modules that a line of nothing but an import statement names; undefined for any other line. */
function importsOf(line: string): string[] | undefined {
  const statement = withoutComment(line).trimEnd();
  const plain = plainImport.exec(statement)?.[1];
  if (plain !== undefined) return itemsOf(plain, moduleItem);
  const [, parent = '', listed = ''] = fromImport.exec(statement) ?? [];
  if (!moduleItem.test(parent)) return undefined;
  const names = itemsOf(withoutParentheses(listed), nameItem);
  if (names === undefined) return undefined;
  return parent === '__future__' ? [] : [parent, ...names.map((name) => `${parent}.${name}`)];
}

/** A list without its parentheses, and without the comma that may be before the second one. */
function withoutParentheses(list: string): string {
  if (!list.startsWith('(') || !list.endsWith(')')) return list;
  const inside = list.slice(1, -1).trimEnd();
  return inside.endsWith(',') ? inside.slice(0, -1) : inside;
}

/** What the items of a list name, each of which must have the form of `item`; else undefined. */
function itemsOf(list: string, item: RegExp): string[] | undefined {
  const names = list.split(',').map((one) => item.exec(one.trim())?.[1]);
  return names.some((name) => name === undefined) ? undefined : (names as string[]);
}

/** The source after its first string, if that comes before all else. */
function withoutDocstring(source: string): string {
  return source.replace(
    /^(?:[ \t]*(?:#.*)?\n)*("""(?:[^"\\]|"(?!""))*"""|'''(?:[^'\\]|'(?!''))*''')[ \t]*(?=\n|$)/,
    '',
  );
}
