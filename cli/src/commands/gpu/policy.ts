import { wrapError } from '../../errors.js';
import { asList, asMap, asNumber, asText, type JsonMap } from '../../json/json.js';
import { stdout } from '../../terminal.js';
import { checkArgs, type CommandContext } from '../command.js';

/** `wsk gpu policy`. */
export async function showPolicy({ args, client }: CommandContext): Promise<void> {
  checkArgs(args, 0, 0, 'No arguments are required.');
  let policy: JsonMap;
  try {
    policy = asMap(await client.callRoute('GET', 'gpu/policy'));
  } catch (error) {
    throw wrapError(error, 'Unable to obtain the policy');
  }
  const decides = policy.get('decides') === true ? '' : ' (another controller decides now)';
  line('policy', asText(policy.get('policy')) + decides);
  line('admission', asText(policy.get('admission')));
  const settings = asMap(policy.get('settings'));
  for (const [stage, name] of asMap(policy.get('stages'))) {
    const own = [...asMap(settings.get(stage))].map(([setting, value]) => `${setting}=${asText(value)}`);
    line(stage, asText(name) + (own.length === 0 ? '' : `  ${own.join(' ')}`));
  }
  const sets = asNumber(policy.get('sharedSets'));
  line('learned', `${asNumber(policy.get('functions'))} functions, shares of ${sets} sets`);
  for (const model of asList(policy.get('models')).map(asMap)) line('predictor', modelText(model));
}

function modelText(model: JsonMap): string {
  const samples = asNumber(model.get('sampleCount'));
  const kind = `${asText(model.get('gpuType'))}/${asText(model.get('mode'))}`;
  const source =
    samples === 0 ? 'capacity model' : `version ${asNumber(model.get('version'))}, learned from ${samples} runs`;
  if (!model.has('error')) return `${kind}: ${source}`;
  const percent = (100 * asNumber(model.get('error'))).toFixed(1);
  return `${kind}: ${source}, off by ${percent} % in ${asNumber(model.get('runs'))} runs beside others`;
}

function line(title: string, text: string): void {
  stdout.print(`${stdout.bold(title.padEnd(10))} ${text}\n`);
}
