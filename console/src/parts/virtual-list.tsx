import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';

/** Rows that are drawn beyond those in sight, above and below. */
const beyond = 8;

/** A table of rows of one height of which only those in sight are in the page. */
export function VirtualList<Row>({
  rows,
  rowPx,
  titles,
  keyOf,
  draw,
  label,
}: {
  rows: readonly Row[];
  /** Height of a row, CSS pixels. */
  rowPx: number;
  /** Titles of the columns. */
  titles: readonly string[];
  keyOf: (row: Row) => string;
  draw: (row: Row) => ComponentChildren;
  label: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const height = box.current?.clientHeight ?? innerHeight;
  const first = Math.max(0, Math.floor(top / rowPx) - beyond);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowPx) + beyond);
  return (
    <div
      class="list"
      ref={box}
      role="table"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      onScroll={({ currentTarget }) => setTop(currentTarget.scrollTop)}
    >
      <div class="row head" role="row" aria-rowindex={1}>
        {titles.map((title) => (
          <span key={title} role="columnheader">
            {title}
          </span>
        ))}
      </div>
      <div class="rows" role="rowgroup" style={{ height: `${rows.length * rowPx}px` }}>
        {rows.slice(first, last).map((row, at) => (
          <div
            key={keyOf(row)}
            class="row"
            role="row"
            aria-rowindex={first + at + 2}
            style={{ transform: `translateY(${(first + at) * rowPx}px)`, height: `${rowPx}px` }}
          >
            {draw(row)}
          </div>
        ))}
      </div>
    </div>
  );
}
