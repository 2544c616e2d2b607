import type { Setting } from '../setting.js';
import { invented } from '../workloads/catalogue.js';
import { markdownTable } from './tables.js';

/** Where the figures of workloads are from; those of the same sources, their own rows, are named together. */
export function sourcesTable({ catalogue, memoryMiB: given }: Pick<Setting, 'catalogue' | 'memoryMiB'>): string {
  const groups = new Map<string, { names: string[]; cells: string[] }>();
  for (const { name, sources } of catalogue) {
    const { unitMs, memoryMiB, stretch, traffic } = sources;
    const cells = [unitMs, given === undefined ? memoryMiB : invented, stretch, traffic].map((source) =>
      source.replace(name, 'its row'),
    );
    const key = cells.join('\n');
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { names: [name], cells });
    else known.names.push(name);
  }
  return markdownTable(
    ['workloads', 'time alone', 'memory', 'time over share', 'traffic'],
    [...groups.values()].map(({ names, cells }) => [namesText(names), ...cells]),
  );
}

function namesText(names: readonly string[]): string {
  const [first] = names;
  return names.length < 3
    ? names.map((name) => `\`${name}\``).join(', ')
    : `\`${first}\` to \`${names.at(-1)}\`, ${names.length}`;
}
