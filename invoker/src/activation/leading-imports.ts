const moduleName = '[A-Za-z_]\\w*(?:\\.[A-Za-z_]\\w*)*';
const alias = '(?:\\s+as\\s+[A-Za-z_]\\w*)?';
const plainImport = new RegExp(`^import\\s+(${moduleName}${alias}(?:\\s*,\\s*${moduleName}${alias})*)\\s*(?:#.*)?$`);
const fromImport = new RegExp(`^from\\s+(${moduleName})\\s+import\\s+(.+?)\\s*(?:#.*)?$`);
const item = new RegExp(`^([A-Za-z_]\\w*)${alias}$`);
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
    if (/^from\s[^#]*\([^)#]*$/.test(line)) {
      const end = lines.findIndex((each, index) => index > at && each.includes(')'));
      if (end < 0) return undefined;
      const inside = lines.slice(at, end + 1).map((each) => each.replace(/#.*$/, ''));
      line = inside.join(' ');
      at = end;
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

/** The modules that a line of nothing but an import statement names; undefined for any other line. */
function importsOf(line: string): string[] | undefined {
  const plain = plainImport.exec(line)?.[1];
  if (plain !== undefined) return plain.split(',').map((one) => one.trim().split(/\s/)[0] ?? '');
  const from = fromImport.exec(line);
  const [, parent = '', listed = ''] = from ?? [];
  if (from === null) return undefined;
  const items = listed
    .replace(/^\(\s*|\s*,?\s*\)$/g, '')
    .split(',')
    .map((one) => item.exec(one.trim())?.[1]);
  if (items.some((one) => one === undefined)) return undefined;
  return parent === '__future__' ? [] : [parent, ...items.map((one) => `${parent}.${one}`)];
}

/** The source after its first string, if that comes before all else. */
function withoutDocstring(source: string): string {
  return source.replace(
    /^(?:[ \t]*(?:#.*)?\n)*("""(?:[^"\\]|"(?!""))*"""|'''(?:[^'\\]|'(?!''))*''')[ \t]*(?=\n|$)/,
    '',
  );
}
