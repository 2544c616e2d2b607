// Tables of experiment `protean`, part `cost`.
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

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
          figure(of('complianceLost'), 2, 100),
        ];
      }),
    ),
  );
  const titles = ['machines missing', 'compliance lost, points'];
  return markdownTable(['availability', 'revocations every', 'notice', ...titles], rows);
}

/** Tables by the names of their blocks; figures that were not measured say so. */
export const costTables: Readonly<Record<string, (metrics: Metrics) => string>> = {
  cost,
  revocations,
};
