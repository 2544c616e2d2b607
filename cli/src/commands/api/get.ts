import { WskError } from '../../errors.js';
import { asMap, type Json } from '../../json/json.js';
import { apiShape, conform } from '../../shapes.js';
import { stdout } from '../../terminal.js';
import { stringifyYaml } from '../../yaml.js';
import { checkArgs, type Command, type CommandContext } from '../command.js';
import { apiError, apisOf, callGateway } from './gateway.js';

async function get({ args, client, flags, settings }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'An API base path or API name is required.');
  const format = flags.text('format');
  if (!['json', 'yaml'].includes(format.toLowerCase())) throw new WskError(`Invalid format type: ${format}`);
  const basepath = args[0] ?? '';
  let answer: Json;
  try {
    answer = await callGateway(client, settings, 'GET', { basepath });
  } catch (error) {
    throw apiError(error, `Unable to get API '${basepath}'`);
  }
  const [api] = apisOf(answer);
  const whole = api && conform(api, apiShape);
  const shown = flags.bool('full') ? whole : whole?.get('apidoc');
  if (!shown) throw new WskError(`API does not exist for basepath ${basepath}`);
  if (format.toLowerCase() === 'json') stdout.printJson(shown);
  else stdout.print(`${await stringifyYaml(asMap(shown))}\n`);
}

/** `wsk api get`. */
export const getCommand: Command = {
  name: 'get',
  argsUsage: 'BASE_PATH | API_NAME',
  summary: 'get API details',
  flags: [
    {
      name: 'format',
      type: 'string',
      default: 'json',
      help: 'Specify the API output `TYPE`, either json or yaml',
    },
    { name: 'full', short: 'f', type: 'bool', help: 'display full API configuration details' },
  ],
  run: get,
};
