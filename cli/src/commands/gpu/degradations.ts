// Models of the degradation of pairs, pairs that drift, and the measurement of pairs.
import { checkArgs, type CommandContext } from '../../command.js';
import { wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type Json, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { percent, table } from './format.js';

const figures = ['Pairs', 'Measurements', 'RMSLE', 'Of figures', 'Of mean', 'MAE', 'Of figures', 'Of mean'];
const modelTitles = [
  'GPU',
  'Slower',
  'Beside',
  'Pairs',
  'Measurements',
  'Predicted by',
  'Trained',
  ...figures.slice(2),
];
const driftTitles = ['GPU', 'Slower', 'Beside', 'Predicted', 'Measured', 'Departed'];

const placeOf = (one: JsonMap): string => `${asText(one.get('gpuType'))}/${asText(one.get('mode'))}`;
const whole = (value: Json | undefined): string => String(asNumber(value));

function modelCells(one: JsonMap): string[] {
  const errors = one.has('errors') ? asMap(one.get('errors')) : undefined;
  const error = (of: string, kind: string): string =>
    errors === undefined ? '-' : asNumber(asMap(errors.get(of)).get(kind)).toFixed(3);
  const compared = ['model', 'figures', 'constant'];
  return [
    placeOf(one),
    asText(one.get('victim')),
    asText(one.get('neighbour')),
    whole(one.get('pairs')),
    whole(one.get('measurements')),
    asText(one.get('predictedBy')),
    one.has('trainedAt') ? new Date(asNumber(one.get('trainedAt'))).toISOString() : '-',
    ...compared.map((of) => error(of, 'rmsle')),
    ...compared.map((of) => error(of, 'mae')),
  ];
}

function sideOf(one: Json | undefined): string {
  const side = asMap(one);
  const name = asText(side.get('name'));
  return side.has('namespace') ? `${name} for ${asText(side.get('namespace'))}` : name;
}

const driftCells = (one: JsonMap): string[] => [
  placeOf(one),
  sideOf(one.get('victim')),
  sideOf(one.get('neighbour')),
  percent(one.get('predicted')),
  percent(one.get('measured')),
  `${whole(one.get('departed'))} of ${whole(one.get('observed'))}`,
];

function measurementLines(state: JsonMap): string {
  const number = (name: string): string => String(Math.round(asNumber(state.get(name))));
  const problems = asList(state.get('problems')).map((one) => {
    const of = asMap(one);
    return `  ${asText(of.get('function'))} is not run: ${asText(of.get('problem'))}\n`;
  });
  const pairs = `${number('measured')} of ${number('chosen')} pairs of ${number('functions')} functions are measured`;
  return `${pairs}; ${number('spentS')} s of ${number('budgetS')} s in the last hour\n${problems.join('')}`;
}

function print(titles: string[], rows: string[][], right: readonly string[]): void {
  const { header, rows: lines } = table(titles, rows, right);
  stdout.print(stdout.bold(header) + lines.join(''));
}

/** `wsk gpu degradations`. */
export async function showDegradations({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let answer: JsonMap;
  try {
    answer = asMap(await client.callRoute('GET', 'gpu/degradations'));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the degradations of pairs');
  }
  print(modelTitles, asList(answer.get('models')).map(asMap).map(modelCells), figures);
  const drifts = asList(answer.get('drifts')).map(asMap);
  if (drifts.length > 0) {
    stdout.print('\n');
    print(driftTitles, drifts.map(driftCells), driftTitles.slice(3));
  }
  if (answer.has('measurements')) stdout.print(`\n${measurementLines(asMap(answer.get('measurements')))}`);
}
