import { readdirSync } from 'node:fs';
import { annotationsOf, valueOf } from '../args/parameters.js';
import { ownNamespace } from '../args/qualified-name.js';
import type { Client } from '../client/client.js';
import { encodePath } from '../client/transport.js';
import { followLogs } from '../commands/activation/follow.js';
import { messageOf, WskError } from '../errors.js';
import { asMap, asNumber, asText, stringify, type Json, type JsonMap } from '../json/json.js';
import { deploy } from '../project/deploy.js';
import type { Deployer } from '../project/deployer.js';
import { placeIn, withOwnPaths, type Place, type Sources } from './place-in-file.js';
import type { ReadTarget, Target } from './target.js';

/** Where the time of a run went, ms. */
export interface RunTimes {
  /** From the save to the end of the reading of the files. */
  read: number;
  upload: number;
  /** On the platform, before a container takes the run. */
  wait: number;
  /** Loading of the code; 0 if it was loaded. */
  load: number;
  run: number;
  /** All else: requests, the end of the log, the record. */
  rest: number;
  total: number;
}

/** The outcome of a run. */
export interface Outcome {
  ok: boolean;
  activationId?: string;
  result?: Json;
  /** Why the run failed, in one or more lines. */
  error?: string;
  /** Where in the developer's files the error is. */
  at?: Place;
  /** `cold`, `prewarmed`, `injected` or `warm`. */
  start?: string;
  /** Annotation `gpu` of the record. */
  gpu?: JsonMap;
  ms: Partial<RunTimes> & { total: number };
}

/** Time and stream before the text of a line of a log. */
const stamp = /^\S+ +(stdout|stderr): /;
/** Frames of stacks that are the runtime's own. */
const ofRuntime = /^\s+at .*(\/runtimes\/nodejs\/|node:internal|\(node:vm)/;

const noFolders = (): Promise<void> => Promise.resolve();

/** A run that the platform has accepted. */
export interface StartedRun {
  activationId: string;
  /** performance.now() when the action was stored. */
  uploadedMs: number;
}

/** The names that messages of the runtime have for the code of a target. */
export function sourcesOf({ path, isFolder }: Target): Sources {
  const files = isFolder ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [];
  return { path, isFolder, files: files.filter((name) => !name.includes('node_modules/')) };
}

/**
 * Stores an action and starts a run of it.
 * @throws WskError if the platform refuses either.
 */
export async function startRun(
  deployer: Deployer,
  { plan, name }: ReadTarget,
  parameters: JsonMap,
): Promise<StartedRun> {
  await deploy(plan, deployer, noFolders);
  const uploadedMs = performance.now();
  const options = { blocking: false, result: false };
  const accepted = await deployer.client.invoke(ownNamespace, `actions/${encodePath(name)}`, parameters, options);
  return { activationId: asText(asMap(accepted).get('activationId')), uploadedMs };
}

/**
 * Waits for the end of a run. Lines of its log go to `print` as they are written, with the developer's paths. `savedMs` and
 * `readMs` are the times of the save and of the end of reading, as performance.now().
 */
export async function followRun(
  client: Client,
  { activationId, uploadedMs }: StartedRun,
  sources: Sources,
  { savedMs, readMs }: { savedMs: number; readMs: number },
  print: (line: string) => void,
): Promise<Outcome> {
  const lines: string[] = [];
  try {
    await followLogs(client, activationId, (line) => {
      const text = line.replace(stamp, '');
      lines.push(text);
      if (!ofRuntime.test(text)) print(withOwnPaths(text, sources));
    });
    const record = asMap(await client.get(ownNamespace, `activations/${activationId}`));
    const endMs = performance.now();
    const before = { read: readMs - savedMs, upload: uploadedMs - readMs };
    return { activationId, ...outcomeOf(record, lines, sources), ms: timesOf(record, before, endMs - savedMs) };
  } catch (error) {
    return failedOutcome(error, savedMs);
  }
}

/** The outcome of a run that a WskError has ended; other errors are thrown again. */
export function failedOutcome(error: unknown, savedMs: number): Outcome {
  if (!(error instanceof WskError)) throw error;
  return { ok: false, error: messageOf(error).trim(), ms: { total: performance.now() - savedMs } };
}

function timesOf(record: JsonMap, before: Pick<RunTimes, 'read' | 'upload'>, total: number): RunTimes {
  const annotations = annotationsOf(record);
  const wait = asNumber(valueOf(annotations, 'waitTime'));
  const load = asNumber(valueOf(annotations, 'initTime'));
  const run = Math.max(0, asNumber(record.get('duration')) - load);
  const known = before.read + before.upload + wait + load + run;
  return { ...before, wait, load, run, rest: Math.max(0, total - known), total };
}

function outcomeOf(record: JsonMap, lines: readonly string[], sources: Sources): Omit<Outcome, 'ms' | 'activationId'> {
  const response = asMap(record.get('response'));
  const result = response.get('result') ?? null;
  const annotations = annotationsOf(record);
  const gpu = valueOf(annotations, 'gpu');
  const start = valueOf(annotations, 'start');
  const told = {
    result,
    ...(gpu !== undefined && { gpu: asMap(gpu) }),
    ...(typeof start === 'string' && { start }),
  };
  if (response.get('success') === true) return { ok: true, ...told };
  const error = errorText(asMap(result).get('error') ?? result);
  const at = placeIn([error, ...lines].join('\n'), sources) ?? (isOfLoading(error) ? startOf(sources) : undefined);
  return {
    ok: false,
    ...told,
    error: `${asText(response.get('status'))}: ${headline(error, lines)}`,
    ...(at && { at }),
  };
}

/** An error as text: with its stack, if it has one. */
function errorText(error: Json): string {
  if (!(error instanceof Map)) return asText(error);
  const stack = error.get('stack');
  return typeof stack === 'string' ? stack : stringify(error);
}

/** The line of an error, or else of the log, that names the exception; the error's first line if none does. */
function headline(error: string, lines: readonly string[]): string {
  const exception = /^(?:.*: )?(\w*(?:Error|Exception)\b: .*)$/;
  const ofError = error.split('\n').find((line) => exception.test(line));
  // An error that refers to the logs may name the exception there only.
  const ofLog = /logs/.test(error) ? lines.findLast((line) => exception.test(line)) : undefined;
  return ofLog ?? ofError ?? error.split('\n', 1)[0] ?? error;
}

/** Whether an error, in the words of the runtimes, is about the file as a whole. */
function isOfLoading(error: string): boolean {
  return /Initialization has failed|Cannot start action|failed to generate or locate a binary|no code to execute/.test(
    error,
  );
}

function startOf({ path, isFolder }: Sources): Place | undefined {
  return isFolder ? undefined : placeIn('/index.js:1', { path, isFolder, files: [] });
}
