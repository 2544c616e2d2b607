import type { ComponentChildren } from 'preact';

/** A table that scrolls by itself where it is wider than the page. Rows have a key and a cell for each title. */
export function Table({
  label,
  titles,
  rows,
}: {
  label: string;
  titles: readonly string[];
  rows: readonly { key: string; cells: readonly ComponentChildren[] }[];
}) {
  return (
    <div class="wide" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>
            {titles.map((title) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells }) => (
            <tr key={key}>
              {cells.map((cell, at) => (
                <td key={titles[at]}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
