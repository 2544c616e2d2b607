// Names and labels in PromQL: enough for dashboards and alerts, which a parser of the whole language is not needed for.

/** A series that an expression reads. */
export interface Selector {
  name: string;
  /** Labels that the expression matches or groups it by; a grouping counts for each series of its expression. */
  labels: string[];
}

const grouping = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const words = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan', 'start', 'end', 'by', 'without']);

/** The series that an expression reads, Grafana's variables and `query_result` and `label_values` included. */
export function seriesIn(expression: string): Selector[] {
  const listed = /^label_values\(\s*(.*?)\s*,\s*(\w+)\s*\)$/.exec(expression);
  if (listed !== null)
    return seriesIn(listed[1] ?? '').map((one) => ({ ...one, labels: [...one.labels, listed[2] ?? ''] }));
  const groups = [...expression.matchAll(grouping)].flatMap(([, names = '']) => namesIn(names));
  const text = expression.replaceAll(grouping, ' ').replaceAll(/\[[^\]]*\]/g, ' ');
  const found: Selector[] = [];
  for (const [, name = '', called, , matchers = ''] of text.matchAll(
    /(?<![\w.])([a-zA-Z_:][\w:]*)\s*(\()?\s*(\{((?:[^}"]|"[^"]*")*)\})?/g,
  )) {
    if (called !== undefined || words.has(name.toLowerCase())) continue;
    const own = [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = '']) => label);
    found.push({ name, labels: [...new Set([...own, ...groups])] });
  }
  return found;
}

function namesIn(text: string): string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/** The metric that a series belongs to: `a_seconds` for `a_seconds_bucket`, if `known` has that. */
export function metricOf(series: string, known: ReadonlySet<string>): string {
  const base = series.replace(/_(bucket|sum|count)$/, '');
  return known.has(series) ? series : base;
}

/** All expressions of a Grafana dashboard: those of its panels and of its variables. */
export function expressionsIn(dashboard: unknown): string[] {
  if (Array.isArray(dashboard)) return dashboard.flatMap(expressionsIn);
  if (typeof dashboard !== 'object' || dashboard === null) return [];
  const isInterval = (dashboard as { type?: unknown }).type === 'interval';
  return Object.entries(dashboard).flatMap(([key, value]) => {
    if ((key === 'expr' || key === 'query' || key === 'definition') && typeof value === 'string') {
      return isInterval || value === '' ? [] : [value];
    }
    return expressionsIn(value);
  });
}
