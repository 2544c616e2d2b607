import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Node } from 'yaml';
import { messageOf, WskError } from '../errors.js';
import { asMap, asText, type JsonMap } from '../json/json.js';
import { readDocument, SchemaError, type Source } from './schema.js';

/** A manifest or a deployment file. */
export interface Manifest {
  file: string;
  project: JsonMap;
  /** At the top level or, where there are none, below `project`. */
  packages: Map<string, JsonMap>;
  /** The packages are below `project`. */
  inProject: boolean;
}

/** @throws WskError if the file cannot be read, is no YAML, or has members that a manifest has not. */
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

/** A mistake in a project's files; the form is wskdeploy's, less the line of its own source that it begins with. */
export function fileError(type: FileErrorType, file: string, message: string): WskError {
  return bareError(`[${type}]: File: [${basename(file)}]: ${message}\n`);
}

/** A message that is printed as it is; the exit code is 1. */
export function bareError(message: string): WskError {
  return new WskError(message, { showPrefix: false });
}
