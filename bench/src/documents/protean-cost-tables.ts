// Tables of bench `protean`, parts `scaling` and `cost`.
import { markdownTable } from '../replay/experiments/tables.js';
import type { Metrics } from './smore-tables.js';

const unmeasured = 'not measured';

const figure = (value: number | undefined, digits: number, factor = 1, end = ''): string =>
  value === undefined ? unmeasured : `${(factor * value).toFixed(digits).replace(/^-(0(?:\.0+)?)$/, '$1')}${end}`;

const availabilities = ['high', 'moderate', 'low'] as const;
const intervals = [60, 300, 3600] as const;
const providers = [
  ['aws', 'AWS'],
  ['azure', 'Azure'],
  ['google', 'Google'],
] as const;

function cost(metrics: Metrics): string {
  const rows = providers.flatMap(([provider, title]) =>
    availabilities.flatMap((availability) =>
      intervals.map((interval) => {
        const of = (name: string): string =>
          figure(metrics?.[`cost.${provider}.${availability}.${interval}.${name}`], 3);
        return [title, availability, `${interval} s`, of('protean'), of('spotOnly'), of('overBound')];
      }),
    ),
  );
  const titles = ['`protean` / on demand', 'spot only / on demand', '`protean` / bound'];
  return markdownTable(['prices', 'availability', 'revocations every', ...titles], rows);
}

function revocations(metrics: Metrics): string {
  const rows = availabilities.flatMap((availability) =>
    intervals.flatMap((interval) =>
      ([30, 120] as const).map((notice) => {
        const of = (name: string): number | undefined => metrics?.[`${name}.${availability}.${interval}.${notice}`];
        return [
          ...[availability, `${interval} s`, `${notice} s`, figure(of('costMissing'), 2, 100, ' %')],
          ...[figure(of('complianceLost'), 2, 100), figure(of('stopped'), 1)],
        ];
      }),
    ),
  );
  const titles = ['machines missing', 'compliance lost, points', 'batches stopped'];
  return markdownTable(['availability', 'revocations every', 'notice', ...titles], rows);
}

function coldStarts(metrics: Metrics): string {
  const rows = (['worldcup98', 'twitter'] as const).flatMap((load) =>
    (['bursts', 'spread'] as const).map((pattern) => {
      const of = (variant: string): string => figure(metrics?.[`coldStarts.${load}.${pattern}.${variant}`], 0);
      const saved = figure(metrics?.[`coldStartsSaved.${load}.${pattern}`], 1, 100, ' %');
      return [load, pattern, of('delayed'), of('atOnce'), saved, 'up to 98 %'];
    }),
  );
  const titles = ['after ten minutes', 'at once', 'fewer', 'fewer, paper'];
  return markdownTable(['load', 'arrivals', ...titles], rows);
}

/** Tables by the names of their blocks; figures that were not measured say so. */
export const costTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  cost,
  revocations,
  'cold-starts': coldStarts,
};
