import { useState } from 'preact/hooks';
import { apiUrl } from '../api-path.js';
import { useLive } from '../hooks.js';
import { amount, duration, percent } from '../format.js';
import type { GpuCost } from '../model.js';
import { Figure } from '../parts/figure.js';
import { Problem } from '../parts/problem.js';
import { FillBar } from '../parts/share-bar.js';
import { Table } from '../parts/table.js';
import { VirtualList } from '../parts/virtual-list.js';
import { authorization, credentials } from '../session.js';

const spans = [1, 7, 30, 365];
const rowPx = 36;

/** What nodes cost in the last days, by function; for operators also by market. */
export function CostPage() {
  const [days, setDays] = useState(30);
  const [problem, setProblem] = useState('');
  const cost = useLive<GpuCost>(`gpu/cost?days=${days}`);
  const known = cost.value;
  const saveCsv = (): void => {
    setProblem('');
    csvOf(days)
      .then((csv) => save('gpu-cost.csv', csv))
      .catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  return (
    <>
      <h1>Cost</h1>
      <div class="buttons">
        <label>
          Last{' '}
          <select value={days} onChange={({ currentTarget }) => setDays(Number(currentTarget.value))}>
            {spans.map((span) => (
              <option key={span} value={span}>
                {span === 1 ? 'day' : `${span} days`}
              </option>
            ))}
          </select>
        </label>
        <button type="button" onClick={saveCsv}>
          Save as CSV
        </button>
      </div>
      <p class="problem" role="alert">
        {problem}
      </p>
      <Problem of={cost} what="Costs cannot be shown" />
      {known !== undefined && <Costs cost={known} />}
    </>
  );
}

function Costs({ cost: { from, to, functions, markets, idle, boot, total } }: { cost: GpuCost }) {
  const seconds = functions.reduce((sum, { gpuSeconds }) => sum + gpuSeconds, 0);
  return (
    <>
      <dl class="figures">
        <Figure name="Total" value={amount(total)} note={`${from} to ${to}, UTC`} />
        <Figure name="GPU hours of functions" value={(seconds / 3600).toFixed(2)} />
        {idle !== undefined && <Figure name="Idle GPUs" value={amount(idle)} note={partOf(idle, total)} />}
        {boot !== undefined && <Figure name="Booting machines" value={amount(boot)} note={partOf(boot, total)} />}
      </dl>
      {markets !== undefined && markets.length > 0 && (
        <Table
          label="Markets"
          titles={['Market', 'Node hours', 'Cost', 'Idle', 'Boot']}
          rows={markets.map((one) => ({
            key: one.market,
            cells: [one.market, one.hours.toFixed(2), amount(one.cost), amount(one.idle), amount(one.boot)],
          }))}
        />
      )}
      <h2>Functions</h2>
      {functions.length === 0 ? (
        <p>No function has used a GPU.</p>
      ) : (
        <div class="costs">
          <VirtualList
            rows={functions}
            rowPx={rowPx}
            label="Costs of functions"
            keyOf={({ namespace, action }) => `${namespace} ${action}`}
            titles={['Function', 'For', 'Part of the total', 'GPU time', 'Cost']}
            draw={({ namespace, action, gpuSeconds, cost }) => (
              <>
                <span role="cell" title={action}>
                  {action}
                </span>
                <span role="cell">{namespace}</span>
                <span role="cell">
                  {total > 0 && <FillBar part={cost / total} label={`${percent(cost / total)} of the total`} />}
                </span>
                <span role="cell">{duration(gpuSeconds * 1000)}</span>
                <span role="cell">{amount(cost)}</span>
              </>
            )}
          />
        </div>
      )}
    </>
  );
}

function partOf(part: number, total: number): string {
  return total > 0 ? percent(part / total) : '';
}

/** The costs as CSV. Rejects with an Error if the API does not answer them. */
async function csvOf(days: number): Promise<string> {
  const headers = { Authorization: authorization() };
  const answer = await fetch(apiUrl(`gpu/cost?days=${days}&format=csv`), { headers, credentials });
  if (!answer.ok) throw new Error(`The costs cannot be saved: the answer has status ${answer.status}.`);
  return answer.text();
}

/** Has the browser save a text as a file. */
function save(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
