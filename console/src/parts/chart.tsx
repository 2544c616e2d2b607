import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clockTime } from '../format.js';

/** A line of a chart. */
export interface ChartSeries {
  label: string;
  /** A value for each time; null or NaN where there is none. */
  values: readonly (number | null)[];
}

/** Props of Chart. */
export interface ChartProps {
  title: string;
  /** Lines, five at most. */
  series: readonly ChartSeries[];
  /** Times of the values, epoch ms, ascending. */
  times: readonly number[];
  /** Unit of the values, as it stands after a number: `ms`, `%`, `/s`; empty for counts. */
  unit: string;
  /** Height of the drawn part, CSS pixels. */
  height?: number;
  /** Upper end of the value axis; absent: the greatest value. */
  most?: number;
  /** Whether lines go on over times without a value. Default false. */
  joins?: boolean;
}

/** Dashes tell lines apart without colours. */
const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4]];

/** A line chart over time, with its values in words and as a table. */
export function Chart({ title, series, times, unit, height = 120, most, joins = false }: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const swatches = useRef<HTMLUListElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [pointed, setPointed] = useState<number | null>(null);
  const labels = series.map(({ label }) => label).join('\n');
  const data = [times.map((time) => time / 1000), ...series.map(({ values }) => values.map(orNull))];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const box = place.current;
    if (box === null) return undefined;
    const colourOf = (at: number): string => {
      const swatch = swatches.current?.children[at]?.firstElementChild;
      return swatch ? getComputedStyle(swatch).color : '';
    };
    const style = (property: string) => (): string => getComputedStyle(box).getPropertyValue(property);
    const axis = {
      stroke: style('color'),
      grid: { stroke: style('border-top-color'), width: 1 },
      ticks: { show: false },
      font: '11px system-ui, sans-serif',
    };
    const options: uPlot.Options = {
      width: Math.max(1, box.clientWidth),
      height,
      padding: [8, 28, 0, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      // A flat line at 0 stands on the axis.
      scales: { y: { range: (_, __, greatest) => [0, most ?? roundUp(greatest ?? 0)] } },
      axes: [
        { ...axis, size: 24, space: 70, values: (_, splits) => splits.map((at) => clockTime(at * 1000)) },
        { ...axis, size: 52, space: 28, values: (_, splits) => splits.map((at) => withUnit(at, unit)) },
      ],
      series: [
        {},
        ...labels.split('\n').map((label, at) => ({
          label,
          stroke: () => colourOf(at),
          width: 1.5,
          dash: dashes[at % dashes.length] ?? [],
          points: { show: false },
          spanGaps: joins,
        })),
      ],
      hooks: { setLegend: [({ cursor }) => setPointed(cursor.idx ?? null)] },
    };
    const drawn = new uPlot(options, latest.current as uPlot.AlignedData, box);
    plot.current = drawn;
    const sizes = new ResizeObserver(() => drawn.setSize({ width: Math.max(1, box.clientWidth), height }));
    sizes.observe(box);
    const darkness = matchMedia('(prefers-color-scheme: dark)');
    const redraw = (): void => drawn.redraw(false, true);
    darkness.addEventListener('change', redraw);
    return () => {
      sizes.disconnect();
      darkness.removeEventListener('change', redraw);
      drawn.destroy();
      plot.current = undefined;
    };
  }, [labels, unit, height, most, joins]);
  useEffect(() => plot.current?.setData(latest.current as uPlot.AlignedData), [times, series]);
  const at = pointed !== null && pointed < times.length ? pointed : times.length - 1;
  return (
    <figure class="chart">
      <figcaption>
        {title}
        {pointed !== null && times[at] !== undefined && <small> at {clockTime(times[at])}</small>}
      </figcaption>
      <div class="plot" ref={place} role="img" aria-label={summaryOf({ title, series, times, unit })} />
      <ul class="legend" ref={swatches}>
        {series.map(({ label, values }, index) => (
          <li key={label}>
            <span class={`swatch line-${index % dashes.length}`} aria-hidden="true" /> {label}{' '}
            <b>{withUnit(values[at], unit)}</b>
          </li>
        ))}
      </ul>
      <ChartTable title={title} series={series} times={times} unit={unit} />
    </figure>
  );
}

/** The values of a chart, once they are asked for. */
function ChartTable({ title, series, times, unit }: ChartProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        As a table<span class="unseen">: {title}</span>
      </summary>
      {isOpen && (
        <div class="scrolled" tabIndex={0} role="region" aria-label={`${title}, values`}>
          <table>
            <thead>
              <tr>
                {['Time', ...series.map(({ label }) => label)].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {times
                .map((time, at) => (
                  <tr key={time}>
                    <th scope="row">{clockTime(time)}</th>
                    {series.map(({ label, values }) => (
                      <td key={label}>{withUnit(values[at], unit)}</td>
                    ))}
                  </tr>
                ))
                .reverse()}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}

/** A chart in words: of each line the last, the least and the greatest value. */
function summaryOf({ title, series, times, unit }: ChartProps): string {
  const lines = series.map(({ label, values }) => {
    const known = values.filter((value) => orNull(value) !== null) as number[];
    if (known.length === 0) return `${label}: no values`;
    const [least, greatest] = known.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [
      Infinity,
      -Infinity,
    ] as [number, number]);
    return `${label}: ${withUnit(known.at(-1), unit)} at last, ${withUnit(least, unit)} to ${withUnit(greatest, unit)}`;
  });
  const [first, last] = [times[0], times.at(-1)];
  const span = first === undefined || last === undefined ? '' : `, ${clockTime(first)} to ${clockTime(last)}`;
  return `${title}${span}. ${lines.join('. ')}.`;
}

/** uPlot draws gaps for null only. */
const orNull = (value: number | null | undefined): number | null =>
  value === null || value === undefined || Number.isNaN(value) ? null : value;

/** A value of three digits with its unit; empty where there is none. */
function withUnit(value: number | null | undefined, unit: string): string {
  const known = orNull(value);
  if (known === null) return '';
  const text = Math.abs(known) >= 1000 ? Math.round(known).toLocaleString('en') : String(Number(known.toPrecision(3)));
  return unit === '' || unit === '/s' ? `${text}${unit}` : `${text} ${unit}`;
}

/** The least of 1, 2 and 5 times a power of ten that is not below a value; 1 for 0. */
function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5, 10].find((factor) => factor * power >= value) ?? 10) * power;
}
