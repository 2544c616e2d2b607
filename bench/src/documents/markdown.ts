// What all tables of documents have.

/** Metrics of a result by name; undefined: no run is saved. */
export type Metrics = Readonly<Record<string, number>> | undefined;

/** A Markdown table. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}
