/** White space, comments and empty statements. */
const gap = /(?:\s|;|\/\/[^\n]*|\/\*[^]*?\*\/)*/y;
const directive = /(['"])use strict\1/y;
const declaration = /(?:const|let|var)\s+/y;
const target = /(?:[A-Za-z_$][\w$]*|\{[^{}()[\]=]*\})\s*=\s*/y;
const comma = /\s*,\s*/y;
const required = /require\(\s*(['"`])([^'"`\\\n$]{1,200})\1\s*\)(?:\.[A-Za-z_$][\w$]*)*/y;
const imported = /import\s{0,20}(?:[\w$*{},\s]{1,1000}?\s{0,20}from\s*)?(['"])([^'"\\\n]{1,200})\1/y;
const semicolon = /\s*;/y;
/** What a statement without a semicolon may be followed by: no continuation of it. */
const lineEnd = /[ \t]*(?=\/\/|\/\*|\r?\n|$)/y;
const nextStatement = /(?!in\b|instanceof\b)(?=[A-Za-z_$'"{}@]|$)/y;
/** Words of code that may load a module later, or change which one is found. */
const laterRequire = /[rR]equire|\bimport\b|\beval\b|\bFunction\b|\bvm\b|getBuiltinModule|mainModule|_load/;

/**
 * The modules that JavaScript source requires or imports, if it does so for all of them before any other statement: then it
 * makes no difference whether they, or others, have been loaded before. Undefined if that is not sure.
 */
export function leadingRequires(source: string): string[] | undefined {
  const names = new Set<string>();
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(source);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const takeName = (pattern: RegExp): boolean => {
    const name = take(pattern)?.[2];
    if (name !== undefined) names.add(name.replace(/^node:/, ''));
    return name !== undefined;
  };
  const takeDeclarators = (): boolean => {
    do if (take(target) === null || !takeName(required)) return false;
    while (take(comma) !== null);
    return true;
  };
  const takeEnd = (): boolean => {
    if (take(semicolon) !== null) return true;
    if (take(lineEnd) === null) return false;
    take(gap);
    return take(nextStatement) !== null;
  };
  for (;;) {
    take(gap);
    const first = at;
    const isTaken =
      take(directive) !== null ||
      (take(declaration) === null ? takeName(required) || takeName(imported) : takeDeclarators());
    if (isTaken && takeEnd()) continue;
    const makesLoader = names.has('module') || names.has('vm');
    return makesLoader || laterRequire.test(source.slice(first)) ? undefined : [...names];
  }
}
