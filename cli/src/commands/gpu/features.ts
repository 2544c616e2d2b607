// `wsk gpu features`: features of a PyTorch model for predictions of degradation.
import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Flags } from '../../args/flags.js';
import { checkArgs, type CommandContext } from '../../command.js';
import { messageOf, usageError, WskError } from '../../errors.js';
import { asMap, asNumber, asText, NumberLiteral, type Json, type JsonMap } from '../../json/json.js';
import { parseJson } from '../../json/parse.js';
import { stdout } from '../../terminal.js';
import { table } from './format.js';

/** The program that runs the model. */
const helper = fileURLToPath(new URL('../../../../runtimes/features/gpuwhisk_features.py', import.meta.url));
const inputPattern = /^([1-9]\d{0,8}(?:x[1-9]\d{0,8})*)(?::([a-z][a-z0-9_]{0,30}))?$/;
/** Most inputs of a model, and the largest batch that features may have. */
const [maxInputs, maxBatch] = [16, 10_000_000];
const [defaultTimeoutS, maxTimeoutS] = [120, 3600];
/** Longest answer and longest text on stderr that are kept, bytes. */
const [maxAnswerBytes, maxTextBytes] = [64 * 1024, 64 * 1024];
/** How long output is awaited after the end of the process, ms. */
const readMs = 1000;

/** `wsk gpu features FILE`. */
export async function showFeatures({ args, flags }: CommandContext): Promise<void> {
  checkArgs(args, 1, 1, 'A Python file is required.');
  const [file = ''] = args;
  const options = optionsOf(flags);
  const timeoutS = flags.given('timeout') ? flags.int('timeout') : defaultTimeoutS;
  if (!(timeoutS >= 1 && timeoutS <= maxTimeoutS))
    throw usageError(`--timeout must be from 1 to ${maxTimeoutS} seconds`);
  const python = flags.given('python') ? flags.text('python') : 'python3';
  const answer = await runHelper(python, ['-B', helper, file, JSON.stringify(options)], timeoutS);
  const problem = asText(answer.get('error'));
  if (problem !== '') throw new WskError(`Unable to obtain the features of '${file}': ${problem}`);
  const features = asMap(answer.get('features'));
  stdout.print(flags.bool('json') ? `${lineOf(features)}\n` : tableOf(features));
}

function optionsOf(flags: Flags): object {
  const given = flags.texts('input');
  if (given.length === 0) throw usageError('--input is required: the shape of one sample, such as 3x224x224');
  if (given.length > maxInputs) throw usageError(`--input may be given ${maxInputs} times at most`);
  const inputs = given.map((text) => {
    const [, shape, dtype] = inputPattern.exec(text) ?? [];
    if (shape === undefined)
      throw usageError(
        `--input must be a shape with or without a type, such as 3x224x224 or 128:int64; found '${text}'`,
      );
    return { shape: shape.split('x').map(Number), ...(dtype !== undefined && { dtype }) };
  });
  const batch = flags.given('batch') ? flags.int('batch') : 1;
  if (!(batch >= 1 && batch <= maxBatch)) throw usageError(`--batch must be from 1 to ${maxBatch}`);
  return {
    inputs,
    batch,
    training: flags.bool('training'),
    ...(flags.given('model') && { model: flags.text('model') }),
  };
}

const meanings: Record<string, string> = {
  flops: 'operations of one sample, forward',
  params: 'parameters',
  memoryMiB: 'device memory, estimated, without the CUDA context',
  activations: 'activation functions',
  batch: 'samples of a step or request',
};

function tableOf(features: JsonMap): string {
  const rows = Array.from(features, ([name, value]) => [name, asText(value), meanings[name] ?? 'layers']);
  const { header, rows: lines } = table(['Feature', 'Value', 'Meaning'], rows, ['Value']);
  return stdout.bold(header) + lines.join('');
}

const lineOf = (features: JsonMap): string =>
  JSON.stringify(Object.fromEntries(Array.from(features, ([name, value]) => [name, asNumber(value)])));

/** The answer of the helper. @throws WskError */
async function runHelper(python: string, args: readonly string[], timeoutS: number): Promise<JsonMap> {
  const { code, signal, answer, text, isLate } = await runToEnd(python, args, timeoutS);
  if (isLate) throw new WskError(`The model was not measured within ${timeoutS} s; --timeout sets another time.`);
  const last = text.trimEnd().split('\n').at(-1) ?? '';
  const told = last === '' ? '' : `: ${last}`;
  if (code !== 0) throw new WskError(`'${python}' ended with ${signal ?? `exit code ${code}`}${told}`);
  const parsed = asMap(jsonIn(answer));
  if (typeof parsed.get('error') === 'string' || areFeatures(parsed.get('features'))) return parsed;
  // The model's file has ended its process, or has written where the answer goes.
  throw new WskError(`'${python}' gave no features${told}`);
}

function jsonIn(text: string): Json {
  try {
    return parseJson(text, { whole: true });
  } catch {
    return null;
  }
}

/** Whether a value is an object of numbers. */
export function areFeatures(value: Json | undefined): value is JsonMap {
  const isNumber = (one: Json): boolean => one instanceof NumberLiteral || typeof one === 'number';
  return value instanceof Map && value.size > 0 && [...value.values()].every(isNumber);
}

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  answer: string;
  /** The end of what was written on stderr. */
  text: string;
  isLate: boolean;
}

/** Runs a program to its end, for at most `timeoutS`. What it has started ends with it, or with this process. */
function runToEnd(program: string, args: readonly string[], timeoutS: number): Promise<Ended> {
  return new Promise((resolve, reject) => {
    // A process group of its own, so that all of it can be ended.
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    let [answer, text, isLate] = ['', '', false];
    const endAll = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    };
    const timer = setTimeout(() => {
      isLate = true;
      endAll();
    }, timeoutS * 1000);
    const interrupted = (signal: NodeJS.Signals): void => {
      endAll();
      process.exit(128 + constants.signals[signal]);
    };
    process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
    const settle = (): void => {
      clearTimeout(timer);
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    };
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      answer += piece;
      if (answer.length > maxAnswerBytes) endAll();
    });
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      text = (text + piece).slice(-maxTextBytes);
    });
    child.on('error', (error) => {
      settle();
      reject(new WskError(`Unable to start '${program}': ${messageOf(error)}. --python names another interpreter.`));
    });
    child.on('exit', () => {
      endAll();
      // A process that has left the group may hold the streams open.
      setTimeout(() => [child.stdout, child.stderr].forEach((stream) => stream.destroy()), readMs).unref();
    });
    child.on('close', (code, signal) => {
      settle();
      resolve({ code, signal, answer, text, isLate });
    });
  });
}
