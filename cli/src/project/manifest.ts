import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Node, YAMLMap } from 'yaml';
import { messageOf, WskError } from '../errors.js';
import { toJson } from '../files.js';
import { asMap, asText, type Json, type JsonMap } from '../json/json.js';

/** A manifest or a deployment file. */
export interface Manifest {
  file: string;
  project: JsonMap;
  /** Packages at the top level or, if there are none, below `project`. */
  packages: Map<string, JsonMap>;
  /** Whether the packages are below `project`. */
  inProject: boolean;
}

/** @throws WskError if the file cannot be read, is not YAML, or has members that manifests do not have. */
export async function readManifest(file: string): Promise<Manifest> {
  let source: string;
  try {
    source = readFileSync(file, 'utf8');
  } catch (error) {
    throw fileError('ERROR_FILE_READ_ERROR', file, messageOf(error));
  }
  const root = await decode(source, file);
  const project = asMap(root.get('project'));
  const top = asMap(root.get('packages'));
  const inProject = top.size === 0 && asMap(project.get('packages')).size > 0;
  const packages = inProject ? asMap(project.get('packages')) : top;
  return { file, project, inProject, packages: new Map([...packages].map(([name, value]) => [name, asMap(value)])) };
}

async function decode(source: string, file: string): Promise<JsonMap> {
  const { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } = await import('yaml');
  const lines = new LineCounter();
  const document = parseDocument(source, { version: '1.1', lineCounter: lines, prettyErrors: true });
  const [problem] = document.errors;
  if (problem) throw fileError('ERROR_YAML_PARSER_ERROR', file, `\n==> ${problem.message}`);
  const resolve = (node: Node | null): Node | null =>
    isAlias(node) ? ((node.resolve(document) as Node | undefined) ?? null) : node;
  const reader: Source = {
    isMap,
    isScalar: (node): node is Node & { source?: string; value: unknown } => isScalar(node),
    isSeq: (node): node is Node & { items: (Node | null)[] } => isSeq(node),
    resolve,
    toPlain: (node) => node.toJS(document, { mapAsMap: true, maxAliasCount: 100 }),
    lineOf: (node) => lines.linePos(node.range?.[0] ?? 0).line,
  } as Source;
  try {
    return asMap(readDocument(document.contents as Node | null, 'the manifest', reader));
  } catch (error) {
    if (!(error instanceof SchemaError) && !(error instanceof ReferenceError)) throw error;
    throw fileError('ERROR_YAML_PARSER_ERROR', file, `\n==> yaml: unmarshal errors:\n==> ${error.message}`);
  }
}

/** The text of a member; empty if there is none. */
export function textOf(map: JsonMap, member: string): string {
  return asText(map.get(member));
}

/** Kinds of mistakes in a project's files, named as by OpenWhisk's wskdeploy. */
type FileErrorType =
  | 'ERROR_FILE_READ_ERROR'
  | 'ERROR_MANIFEST_FILE_NOT_FOUND'
  | 'ERROR_YAML_FILE_FORMAT_ERROR'
  | 'ERROR_YAML_INVALID_RUNTIME'
  | 'ERROR_YAML_PARSER_ERROR';

/** A mistake in a project's files. The form is wskdeploy's, without the line number of its own source. */
export function fileError(type: FileErrorType, file: string, message: string): WskError {
  return bareError(`[${type}]: File: [${basename(file)}]: ${message}\n`);
}

/** An error whose message is printed unchanged; the exit code is 1. */
export function bareError(message: string): WskError {
  return new WskError(message, { showPrefix: false });
}

/** A JSON schema. */
interface Schema {
  [keyword: string]: Schema | Schema[] | string | string[] | number | boolean;
}

/** Reads one node of a YAML document; `where` is its name in messages. `schema` accepts the same values. */
interface Read {
  (node: Node | null, where: string, document: Source): Json;
  schema: Schema;
}

/** A reader with its schema. */
function readerOf(schema: Schema, read: (node: Node | null, where: string, document: Source) => Json): Read {
  return Object.assign(read, { schema });
}

/** The YAML library, which is loaded late, and the document that is read. */
interface Source {
  isMap(node: unknown): node is YAMLMap<Node, Node | null>;
  isScalar(node: unknown): node is Node & { source?: string; value: unknown };
  isSeq(node: unknown): node is Node & { items: (Node | null)[] };
  resolve(node: Node | null): Node | null;
  toPlain(node: Node): unknown;
  lineOf(node: Node): number;
}

/** A part of a manifest that does not match the schema. */
class SchemaError extends Error {}

function fail(node: Node, document: Source, message: string): never {
  throw new SchemaError(`line ${document.lineOf(node)}: ${message}`);
}

/** Text as written: `1.0` and `yes` stay unchanged. */
const text = readerOf({ type: ['string', 'number', 'boolean', 'null'] }, (node, where, document) => {
  if (node === null) return '';
  if (!document.isScalar(node)) return fail(node, document, `${where} must be text`);
  return typeof node.value === 'string' ? node.value : (node.source ?? '');
});

const any = readerOf({}, (node, _, document) => (node === null ? null : toJson(document.toPlain(node))));

const bool = readerOf({ type: ['boolean', 'null'] }, (node, where, document) => {
  const value = any(node, where, document);
  if (node === null || value === null) return false;
  return typeof value === 'boolean' ? value : fail(node, document, `${where} must be true or false`);
});

const [leastInt, mostInt] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
const int = readerOf({ type: ['integer', 'null'], minimum: leastInt, maximum: mostInt }, (node, where, document) => {
  const value = any(node, where, document);
  if (node === null || value === null) return null;
  return Number.isSafeInteger(value) ? value : fail(node, document, `${where} must be a whole number`);
});

const list = (read: Read): Read =>
  readerOf({ type: ['array', 'null'], items: read.schema }, (node, where, document) => {
    if (node === null || isNull(node, document)) return [];
    if (!document.isSeq(node)) return fail(node, document, `${where} must be a list`);
    return node.items.map((item) => read(document.resolve(item), where, document));
  });

/** Whether a node is there and says that there is no value: `null` or `~`. */
function isNull(node: Node, document: Source): boolean {
  return document.isScalar(node) && node.value === null;
}

function members(node: Node | null, where: string, document: Source): [string, Node, Node | null][] {
  if (node === null || isNull(node, document)) return [];
  if (!document.isMap(node)) return fail(node, document, `${where} must have members`);
  return node.items.map(({ key, value }) => [text(key, where, document) as string, key, document.resolve(value)]);
}

/** Any names, each with the same kind of value. */
const mapOf = (read: Read): Read =>
  readerOf(
    { type: ['object', 'null'], additionalProperties: read.schema },
    (node, where, document) =>
      new Map(members(node, where, document).map(([name, , value]) => [name, read(value, `'${name}'`, document)])),
  );

/** Accepts these members only, so that a misspelt member is reported. */
const record = (fields: Record<string, Read>): Read =>
  readerOf(recordSchema(fields), (node, where, document) => {
    const result: JsonMap = new Map();
    for (const [name, key, value] of members(node, where, document)) {
      const read = Object.hasOwn(fields, name) ? fields[name] : undefined;
      if (!read) return fail(key, document, `field ${name} not found in ${where}`);
      result.set(name, read(value, `${name} of ${where}`, document));
    }
    return result;
  });

function recordSchema(fields: Record<string, Read>): Schema {
  const properties = Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]));
  return { type: ['object', 'null'], properties, additionalProperties: false };
}

const inputFields = {
  type: text,
  description: text,
  value: any,
  required: bool,
  default: any,
  status: text,
  schema: any,
};

/** `name: value` becomes `{value}`; the long form, recognised by its members, stays and is marked `multiline`. */
const longInput = record(inputFields);
const isLongInput: Schema = { type: 'object', propertyNames: { enum: Object.keys(inputFields) } };
const input = readerOf({ if: isLongInput, then: longInput.schema }, (node, where, document) => {
  const isLong =
    node !== null && document.isMap(node) && members(node, where, document).every(([name]) => name in inputFields);
  if (!isLong) return new Map([['value', any(node, where, document)]]);
  return (longInput(node, where, document) as JsonMap).set('multiline', true);
});

const inputs = mapOf(input);
const annotations = mapOf(any);
/** Annotations of actions; the platform checks `gpu`. */
const actionAnnotations = readerOf(
  { ...annotations.schema, properties: { gpu: { $ref: '#/$defs/gpu' } } },
  (node, where, document) => annotations(node, where, document),
);

const action = record({
  name: text,
  location: text,
  version: text,
  function: text,
  code: text,
  runtime: text,
  namespace: text,
  credential: text,
  exposedUrl: text,
  'web-export': text,
  web: text,
  main: text,
  docker: text,
  native: bool,
  conductor: bool,
  limits: record({
    timeout: int,
    memorySize: int,
    logSize: int,
    concurrentActivations: int,
    userInvocationRate: int,
    codeSize: int,
    parameterSize: int,
  }),
  inputs,
  outputs: inputs,
  description: text,
  annotations: actionAnnotations,
  include: list(list(text)),
  exclude: list(text),
});

const trigger = record({
  feed: text,
  namespace: text,
  credential: text,
  inputs,
  name: text,
  description: text,
  annotations,
  source: text,
});

const onePackage = record({
  name: text,
  version: text,
  license: text,
  public: bool,
  repositories: list(record({ url: text, description: text, credential: text })),
  dependencies: mapOf(record({ version: text, location: text, inputs, annotations })),
  namespace: text,
  credential: text,
  apiHost: text,
  apigwAccessToken: text,
  actions: mapOf(action),
  triggers: mapOf(trigger),
  feeds: any,
  rules: mapOf(record({ trigger: text, action: text, rule: text, name: text, description: text, annotations })),
  inputs,
  sequences: mapOf(record({ actions: text, web: text, annotations })),
  description: text,
  annotations,
  apis: mapOf(mapOf(mapOf(mapOf(record({ method: text, response: text }))))),
});

/** The schema of `manifest.yaml` and `deployment.yaml`. */
const readDocument = record({
  project: record({
    name: text,
    namespace: text,
    credential: text,
    apiHost: text,
    apigwAccessToken: text,
    version: text,
    packages: mapOf(onePackage),
    inputs,
    config: text,
  }),
  packages: mapOf(onePackage),
});

/** The JSON schema (draft 2020-12) of manifests; `gpu` is that of annotation `gpu`. */
export function manifestSchema(gpu: Schema): Schema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'manifest.yaml and deployment.yaml of a project',
    ...readDocument.schema,
    $defs: { gpu },
  };
}
