import type { Json } from '../json/json.js';

/**
 * Replaces `$NAME` and `${NAME}` by environment variables; one that is not set is empty. `$${NAME}` stands for
 * `${NAME}` itself. Text that does not begin with `$` is only looked at if it has `${` and as many `{` as `}`.
 */
export function interpolate(text: string, environment: NodeJS.ProcessEnv = process.env): string {
  const count = (letter: string): number => text.split(letter).length - 1;
  const hasVariable = (text.startsWith('$') && text.length > 1) || (text.includes('${') && count('{') === count('}'));
  if (!hasVariable) return text;
  return text.replace(
    /\$\$\{([^${}]+)\}|\$\{([^${}]+)\}|\$([^${}]+)/g,
    (_, escaped: string | undefined, braced: string | undefined, plain: string | undefined) =>
      escaped === undefined ? (environment[braced ?? plain ?? ''] ?? '') : `\${${escaped}}`,
  );
}

/** Like interpolate, for text at any depth of a value. */
export function interpolateAll(value: Json): Json {
  if (typeof value === 'string') return interpolate(value);
  if (Array.isArray(value)) return value.map(interpolateAll);
  return value instanceof Map ? new Map([...value].map(([key, item]) => [key, interpolateAll(item)])) : value;
}

/** The name in `$NAME` or `${NAME}`. */
export function variableName(text: string): string {
  return text.replace('$', '').replace(/[{}]/g, '');
}
