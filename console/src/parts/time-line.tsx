import { clockTime } from '../format.js';

/** Something that lasts, as a bar of a time line. */
export interface Span {
  key: string;
  label: string;
  /** What else is told of it. */
  note: string;
  /** Epoch ms; `until` is absent while it lasts. */
  from: number;
  until?: number;
  /** Fraction, 0–1, that its bar is thick. */
  share: number;
  kind: 'own' | 'other' | 'workload';
}

/** Thickness of the bar of a whole GPU, CSS pixels. */
const wholePx = 20;

/** Bars over time, one below the other. Times are epoch ms. */
export function TimeLine({
  label,
  spans,
  from,
  to,
}: {
  label: string;
  spans: readonly Span[];
  from: number;
  to: number;
}) {
  const part = (at: number): number => Math.min(1, Math.max(0, (at - from) / (to - from)));
  return (
    <div class="time-line">
      <ul aria-label={label}>
        {spans.map((span) => {
          const [begin, end] = [part(span.from), part(span.until ?? to)];
          const width = `${Math.max(0.2, 100 * (end - begin))}%`;
          return (
            <li key={span.key}>
              <span class="span-label">
                {span.label} <small>{span.note}</small>
              </span>
              <span class="unseen">
                since {clockTime(span.from)}
                {span.until === undefined ? '' : ` until ${clockTime(span.until)}`}
              </span>
              <span class="span-track" aria-hidden="true">
                <span
                  class={`span ${span.kind}`}
                  style={{ left: `${100 * begin}%`, width, height: `${Math.max(3, wholePx * span.share)}px` }}
                />
              </span>
            </li>
          );
        })}
      </ul>
      <div class="span-axis" aria-hidden="true">
        <span>{clockTime(from)}</span>
        <span>{clockTime((from + to) / 2)}</span>
        <span>{clockTime(to)}</span>
      </div>
    </div>
  );
}
