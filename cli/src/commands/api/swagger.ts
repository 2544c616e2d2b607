import { argumentError, messageOf, WskError, wrapError } from '../../errors.js';
import { readTextFile } from '../../files.js';
import { asMap, asText, stringify, type Json } from '../../json/json.js';
import { parseJson } from '../../json/parse.js';
import { parseYaml } from '../../yaml.js';

/**
 * Reads an API's swagger file, YAML if it is called so, and returns it as JSON text.
 * @throws WskError if it cannot be read or lacks what an API needs.
 */
export async function readSwagger(file: string): Promise<string> {
  const source = read(file);
  const text = /ya?ml$/.test(file) ? await yamlToJson(source) : source;
  let swagger: Json;
  try {
    swagger = parseJson(text);
  } catch (error) {
    throw argumentError(`Error parsing swagger file '${file}': ${messageOf(error)}`);
  }
  const document = asMap(swagger);
  const basePath = asText(document.get('basePath'));
  const complete = basePath !== '' && asText(document.get('swagger')) !== '';
  if (!complete || !(document.get('info') instanceof Map) || !(document.get('paths') instanceof Map)) {
    throw argumentError('Swagger file is invalid (missing basePath, info, paths, or swagger fields)');
  }
  if (!basePath.startsWith('/')) throw argumentError('Swagger file basePath must start with a leading slash (/)');
  return text;
}

function read(file: string): string {
  try {
    return readTextFile(file);
  } catch (error) {
    throw wrapError(error, `Error reading swagger file '${file}'`, { showUsage: true });
  }
}

async function yamlToJson(text: string): Promise<string> {
  try {
    return stringify(await parseYaml(text));
  } catch (error) {
    throw new WskError(`Unable to parse YAML configuration file: ${messageOf(error)}`);
  }
}
