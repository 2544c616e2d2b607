// Costs of nodes by function, as JSON and CSV.
import { malformedQuery } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { CostBook } from '@gpuwhisk/gpu/stages/procure/costs';
import { dayOf } from '../gpu/cost/cost-ledger.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot } from '../http/route.js';
import type { Route, ViewerCall } from '../http/route.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';

const dayMs = 86_400_000;
const [defaultDays, maxDays] = [30, 400];

/** The number of days that a call asks for. Throws ApiError (400). */
function daysOf({ query }: ViewerCall): number {
  const text = query.get('days') ?? String(defaultDays);
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (days < 1 || days > maxDays) throw malformedQuery('days', `days must be a whole number from 1 to ${maxDays}.`);
  return days;
}

/** Whether a call asks for CSV. Throws ApiError (400). */
function asksForCsv({ query }: ViewerCall): boolean {
  const format = query.get('format') ?? 'json';
  if (format !== 'json' && format !== 'csv') throw malformedQuery('format', 'format must be json or csv.');
  return format === 'csv';
}

/** Digits of costs and seconds, so that sums of fractions are readable. */
const rounded = (value: number): number => Math.round(value * 1e6) / 1e6;

/** The costs that a caller may see: operators all, a namespace those of its own functions. */
function costView(book: CostBook, { identity, isOperator }: ViewerCall): JsonObject & { functions: JsonObject[] } {
  const functions = [...book.functions.values()]
    .filter(({ namespace }) => isOperator || namespace === identity.namespace.name)
    .sort((one, other) => other.cost - one.cost || other.gpuSeconds - one.gpuSeconds)
    .map((one) => ({ ...one, gpuSeconds: rounded(one.gpuSeconds), cost: rounded(one.cost) }));
  if (!isOperator) return { functions, total: rounded(functions.reduce((sum, { cost }) => sum + cost, 0)) };
  const markets = Array.from(book.markets, ([market, { hours, cost, idle, boot }]) => ({
    ...{ market, hours: rounded(hours), cost: rounded(cost), idle: rounded(idle), boot: rounded(boot) },
  }));
  const sumOf = (part: 'cost' | 'idle' | 'boot'): number => rounded(markets.reduce((sum, one) => sum + one[part], 0));
  return { functions, markets, idle: sumOf('idle'), boot: sumOf('boot'), total: sumOf('cost') };
}

/** A field of CSV (RFC 4180). */
function field(value: string): string {
  return /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;
}

/** A line for each function, then for operators the idle cost and that of booting, which have no namespace. */
function csvOf(view: ReturnType<typeof costView>): string {
  const lines = view.functions.map(({ namespace, action, gpuSeconds, cost }) =>
    [field(String(namespace)), field(String(action)), String(gpuSeconds), String(cost)].join(','),
  );
  for (const part of ['idle', 'boot']) if (typeof view[part] === 'number') lines.push(`,(${part}),,${view[part]}`);
  return ['namespace,action,gpuSeconds,cost', ...lines, ''].join('\r\n');
}

/** The route to costs. */
export function gpuCostRoutes({ clock, costLedger }: Pick<ApiContext, 'clock' | 'costLedger'>): Route[] {
  return [
    {
      access: 'viewer',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/cost`,
      operationId: 'getGpuCost',
      summary: 'What nodes cost by namespace and action: price times share of the GPU-seconds',
      parameters: [
        {
          name: 'days',
          in: 'query',
          type: 'integer',
          description: `The last days (UTC), 1 to ${maxDays}; default ${defaultDays}`,
        },
        { name: 'format', in: 'query', type: 'string', description: 'json or csv; default json' },
      ],
      responses: { 200: { description: 'Costs', schema: 'GpuCost' }, ...errorResponses(400, 401, 500) },
      handle: async (call: ViewerCall) => {
        const isCsv = asksForCsv(call);
        const to = clock.now();
        const [from, upto] = [dayOf(to - (daysOf(call) - 1) * dayMs), dayOf(to)];
        const view = costView(await costLedger.between(from, upto), call);
        if (isCsv) return { status: 200, body: csvOf(view), contentType: 'text/csv; charset=UTF-8' };
        return jsonAnswer({ from, to: upto, ...view });
      },
    },
  ];
}
