import { asMap, asText, NumberLiteral, type Json, type JsonMap } from '../json/json.js';
import { parseJson } from '../json/parse.js';
import { fileError } from './manifest.js';

/** An input of a package, action or trigger once its value is known. */
export interface Input {
  value: Json;
  type: string;
  required: boolean;
}

const defaults: Record<string, Json> = { string: '', integer: 0, float: 0, boolean: false, json: new Map() };

/** Whether a value is the default value of its type. */
function isDefault({ type, value }: Input): boolean {
  const none = defaults[type];
  return none instanceof Map ? value instanceof Map && value.size === 0 : value === none;
}

function typeOf(value: Json): string {
  if (value === null || typeof value === 'string') return 'string';
  if (typeof value === 'boolean') return 'boolean';
  if (Array.isArray(value)) return 'slice';
  if (value instanceof Map) return 'json';
  return Number.isInteger(value) || value instanceof NumberLiteral ? 'integer' : 'float';
}

/**
 * The value of an input as the manifest declares it, with environment variables replaced: its `value`, else its
 * `default`, else the empty value of its type. The name of a type in place of a value stands for that empty value.
 * @throws WskError for an unknown type, or malformed JSON.
 */
export function resolveInput(name: string, declared: JsonMap, file: string): Input {
  let value = declared.get('value') ?? null;
  let type: string;
  if (declared.get('multiline') === true) {
    value ??= declared.get('default') ?? null;
    type = asText(declared.get('type')) || typeOf(value);
    if (!(type in defaults) && type !== 'slice') {
      throw fileError('ERROR_YAML_PARSER_ERROR', file, `Parameter [${name}] has an invalid Type. [${type}]`);
    }
  } else {
    type = typeOf(value);
    if (typeof value === 'string' && value in defaults) {
      type = value;
      value = defaults[type] ?? null;
    }
  }
  const input = { type, required: declared.get('required') === true };
  if (value === null) return { ...input, value: defaults[type] ?? null };
  if (type === 'json') return { ...input, value: jsonValue(name, value, file) };
  return { ...input, value: interpolateAll(value) };
}

function jsonValue(name: string, value: Json, file: string): Json {
  if (value instanceof Map) return interpolateAll(value);
  try {
    return parseJson(asText(value), { whole: true });
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const message = `Parameter [${name}]: Type Expected: [json], Actual: [${typeOf(value)}]`;
    throw fileError('ERROR_YAML_PARSER_ERROR', file, message);
  }
}

/** The text that declares the input, before any replacement. */
function declaredText(declared: JsonMap): string | undefined {
  const value = declared.get('value');
  return typeof value === 'string' ? value : undefined;
}

/**
 * The inputs of a package: the project's, then its own. An environment variable of the same name gives an input its
 * value.
 */
export function packageInputs(
  declared: JsonMap,
  project: Map<string, Input>,
  commandLine: JsonMap,
  file: string,
): Map<string, Input> {
  const inputs = new Map(project);
  for (const [name, declaration] of declared) {
    const input = resolveInput(name, asMap(declaration), file);
    if (isDefault(input) && process.env[name] !== undefined) input.value = process.env[name];
    const text = declaredText(asMap(declaration));
    if (isDefault(input) && text !== undefined) input.value = project.get(variableName(text))?.value ?? input.value;
    inputs.set(name, input);
  }
  for (const [name, input] of inputs) {
    const given = commandLine.get(name);
    if (given !== undefined) inputs.set(name, { ...input, value: interpolateAll(given) });
  }
  requireValues(inputs, file);
  return inputs;
}

/** The inputs of an action, trigger or dependency, as parameters: the command line's value, else the manifest's. */
export function parametersFrom(
  declared: JsonMap,
  ofPackage: Map<string, Input>,
  commandLine: JsonMap,
  file: string,
): JsonMap {
  const inputs = new Map<string, Input>();
  for (const [name, declaration] of declared) {
    const input = resolveInput(name, asMap(declaration), file);
    const given = commandLine.get(name);
    const text = declaredText(asMap(declaration));
    if (given !== undefined) input.value = interpolateAll(given);
    else if (isDefault(input) && text !== undefined) {
      input.value = ofPackage.get(variableName(text))?.value ?? input.value;
    }
    inputs.set(name, input);
  }
  requireValues(inputs, file);
  return valuesOf(inputs);
}

/** The values by name; null ones are left out. */
export function valuesOf(inputs: Map<string, Input>): JsonMap {
  return new Map([...inputs].filter(([, { value }]) => value !== null).map(([name, { value }]) => [name, value]));
}

function requireValues(inputs: Map<string, Input>, file: string): void {
  const missing = [...inputs].filter(([, input]) => input.required && isDefault(input)).map(([name]) => name);
  if (missing.length === 0) return;
  const message =
    'Required inputs are missing values even after applying interpolation using env. variables. Please set missing env. variables and/or input values in manifest/deployment file or on CLI for following inputs: ';
  throw fileError('ERROR_YAML_FILE_FORMAT_ERROR', file, `${message}${missing.join(', ')}`);
}

/**
 * A name in a manifest: the value of a package's input for `$NAME`, else the text with environment variables replaced.
 */
export function nameFrom(text: string, inputs: Map<string, Input>): string {
  const input = text.includes('$') ? inputs.get(variableName(text)) : undefined;
  return input ? asText(input.value) : interpolate(text);
}

/**
 * Replaces `$NAME` and `${NAME}` by environment variables; an unset variable is empty. `$${NAME}` stands for `${NAME}`
 * itself. Text that does not begin with `$` is changed only if it has `${` and as many `{` as `}`.
 */
export function interpolate(text: string, environment: NodeJS.ProcessEnv = process.env): string {
  const count = (letter: string): number => text.split(letter).length - 1;
  const hasVariable = (text.startsWith('$') && text.length > 1) || (text.includes('${') && count('{') === count('}'));
  if (!hasVariable) return text;
  return text.replace(
    /\$\$\{([^${}]+)\}|\$\{([^${}]+)\}|\$([^${}]+)/g,
    (_, escaped: string | undefined, braced: string | undefined, plain: string | undefined) =>
      escaped === undefined ? (environment[braced ?? plain ?? ''] ?? '') : `\${${escaped}}`,
  );
}

/** Applies interpolate to text at any depth of a value. */
export function interpolateAll(value: Json): Json {
  if (typeof value === 'string') return interpolate(value);
  if (Array.isArray(value)) return value.map(interpolateAll);
  return value instanceof Map ? new Map([...value].map(([key, item]) => [key, interpolateAll(item)])) : value;
}

/** The name in `$NAME` or `${NAME}`. */
function variableName(text: string): string {
  return text.replace('$', '').replace(/[{}]/g, '');
}

/** `/namespace/name`, in the given namespace unless the name has one. */
export function qualified(namespace: string, name: string): string {
  return name.startsWith('/') ? name : `/${namespace}/${name}`;
}

/** Annotations as declared, with the annotation of the project. */
export function declaredAnnotations(declared: JsonMap, { managed }: { managed?: JsonMap }): JsonMap {
  const annotations = asMap(interpolateAll(asMap(declared.get('annotations'))));
  return managed ? new Map([...annotations, ['whisk-managed', managed]]) : annotations;
}
