// Forecasts of the requests of functions that need a GPU.
import { checkArgs, type CommandContext } from '../../command.js';
import { wrapError, WskError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';

const bars = [...'▁▂▃▄▅▆▇█'];

/** Numbers as bars from 0 to `most`; 0 and what is not known are blanks. */
function sparkline(values: readonly (number | undefined)[], most: number): string {
  return values
    .map((value) => {
      if (value === undefined || !(value > 0)) return ' ';
      const at = Math.ceil((value / most) * bars.length) - 1;
      return bars[Math.min(bars.length - 1, Math.max(0, at))];
    })
    .join('');
}

const numbersIn = (value: Json | undefined): (number | undefined)[] =>
  asList(value).map((one) => (one === null ? undefined : asNumber(one)));

/** The forecast of an action that is named as `wsk` names actions, whichever namespace it runs for. */
function isOf(one: JsonMap, name: string): boolean {
  const qualified = asText(one.get('function'));
  return name.startsWith('/')
    ? qualified === name.replace(/^\/_\//, `/${asText(one.get('namespace'))}/`)
    : qualified.endsWith(`/${name}`);
}

/** `wsk gpu forecast`. */
export async function showForecast({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An action name is required.');
  const [name = ''] = args;
  let all: JsonMap[];
  try {
    all = asList(await client.callRoute('GET', 'gpu/forecasts')).map(asMap);
  } catch (error) {
    throw wrapError(error, `Unable to obtain the forecast of '${name}'`);
  }
  const found = all.filter((one) => isOf(one, name));
  if (found.length === 0) throw new WskError(`No request of '${name}' came in the last day.`);
  for (const one of found) stdout.print(linesOf(one));
}

function linesOf(one: JsonMap): string {
  const requests = numbersIn(one.get('requests'));
  const expected = numbersIn(one.get('expected'));
  const most = Math.max(1, ...[...requests, ...expected].map((value) => value ?? 0));
  const now = one.has('now') ? asMap(one.get('now')) : undefined;
  const forecast =
    now === undefined
      ? 'no model has been trained yet'
      : `${asNumber(now.get('requests')).toFixed(1)} expected in this minute, any with a probability of ${Math.round(100 * asNumber(now.get('active')))} %`;
  return [
    stdout.bold(asText(one.get('function'))),
    ` for ${asText(one.get('namespace'))}: ${forecast}\n`,
    `requests  |${sparkline(requests, most)}|  last 60 minutes, at most ${Math.round(most)} in one\n`,
    `expected  |${sparkline(expected, most)}|\n`,
  ].join('');
}
