import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, invokePath, type Api } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../machine.js';
import { startPlatform } from '../servers.js';

const exampleDir = join(repositoryDir, 'examples', 'text-recognition');
const requirements = ['rapidocr==3.10.0', 'onnxruntime>=1.20,<2'];
const imports = ['numpy', 'PIL.Image', 'rapidocr'];
const memoryMiB = 1024;
const timeoutMs = 300_000;
const installWithinMs = 900_000;
const coldStarts = 5;

/** The text recognition example: seconds of imports and model loading before a short run. */
export const inference: Bench = {
  summary: 'text recognition, cold, warm and in containers readied ahead (installs its packages first)',
  parts: ['recognise', 'readied'],
  async run(context) {
    const { options, cleanup, temporaryDir, say } = context;
    const wants = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const code = await readFile(join(exampleDir, 'recognise.py'), 'utf8');
    const picture = await readFile(join(exampleDir, 'sample.png'));
    const body = JSON.stringify({ image: picture.toString('base64') });
    const onPlatform = async (measure: (api: Api) => Promise<Measurement[]>): Promise<Measurement[]> => {
      // Each part has a platform of its own, since idle containers hold the memory that readied ones need.
      const platform = await startPlatform(cleanup, { dataDir: join(temporaryDir, 'data') });
      const api = connectApi(platform.url);
      cleanup.add('connection', () => api.close());
      const measured = await measure(api);
      api.close();
      await platform.stop();
      return measured;
    };
    const measurements = await onPlatform(async (api) => {
      await putAction(api, 'install', code);
      const startedMs = performance.now();
      await invokeAndWait(api, 'install', body);
      const installMs = performance.now() - startedMs;
      say(`  packages installed and first text read after ${(installMs / 1000).toFixed(1)} s`);
      const installed = { name: 'inferenceInstallMs', value: installMs };
      return wants('recognise') ? [...(await measureRecognition(context, api, code, body)), installed] : [installed];
    });
    if (!wants('readied')) return measurements;
    const putWarm = (api: Api) => (name: string, source: string, entry: string) =>
      putAction(api, name, source, { imports, entry });
    const readied = await onPlatform((api) => measureReadied(api, putWarm(api), code, body, say));
    return [...measurements, ...readied];
  },
};

async function measureRecognition(context: BenchContext, api: Api, code: string, body: string): Promise<Measurement[]> {
  const coldMs: number[] = [];
  for (let index = 0; index < coldStarts; index += 1) {
    await putAction(api, `recognise${index}`, code);
    coldMs.push(await recognise(context, api, `recognise${index}`, body));
  }
  const warmMs: number[] = [];
  for (let sample = 0; sample < context.options.samples; sample += 1) {
    warmMs.push(await recognise(context, api, `recognise${coldStarts - 1}`, body));
  }
  return [medianOf('inferenceColdMs', coldMs), medianOf('inferenceWarmMs', warmMs)];
}

async function putAction(api: Api, name: string, code: string, warmth?: object): Promise<void> {
  await api.json('PUT', `/api/v1/namespaces/_/actions/${name}`, {
    exec: { kind: 'python:default', code },
    limits: { memory: memoryMiB, timeout: timeoutMs },
    annotations: [
      { key: 'requirements', value: requirements },
      ...(warmth === undefined ? [] : [{ key: 'warm', value: warmth }]),
    ],
  });
}

/** Time of one blocking invocation, ms. Throws unless the function read the picture's text. */
async function recognise({ say }: BenchContext, api: Api, name: string, body: string): Promise<number> {
  const { status, text, elapsedMs } = await api.send('POST', invokePath(name, true), body);
  if (status !== 200) throw new Error(`${name} gave ${status}: ${text.slice(0, 500)}`);
  expectText(JSON.parse(text));
  say(`  ${name}: ${elapsedMs.toFixed(0)} ms`);
  return elapsedMs;
}

/** Sends a non-blocking invocation and polls until its record exists. */
async function invokeAndWait(api: Api, name: string, body: string): Promise<void> {
  const answer = await api.send('POST', invokePath(name, false), body);
  if (answer.status !== 202) throw new Error(`${name} gave ${answer.status}: ${answer.text.slice(0, 500)}`);
  const { activationId } = JSON.parse(answer.text) as { activationId: string };
  const deadlineMs = performance.now() + installWithinMs;
  for (;;) {
    const record = await api.send('GET', `/api/v1/namespaces/_/activations/${activationId}`);
    if (record.status === 200) return expectText(JSON.parse(record.text));
    if (performance.now() > deadlineMs) throw new Error(`${name} has no record after ${installWithinMs} ms`);
    await sleep(500);
  }
}

function expectText(activation: unknown): void {
  const { response } = activation as { response: { result?: { text?: string } } };
  if (!/invoice/i.test(response.result?.text ?? '')) {
    throw new Error(`the text was not read: ${JSON.stringify(response).slice(0, 500)}`);
  }
}

const samples = 3;
/**
 * Lengths of a run that only waits, s, one for each attempt. The run keeps the first container busy, so that the next
 * request goes to the one that is readied. A container is readied with an eighth of the processor share of others: on a
 * machine that still works on something else, it takes longer. A blocking invocation may take 60 s.
 */
const heldS = [20, 40, 55] as const;
/** Part of that run that is left for the request, s. */
const leftS = 5;

/** Code that notes when the function's first line runs, and how often its container was used. */
const stamped = `
import time as _time
_recognise, _runs = main, 0
def main(args):
    global _runs
    first_line_ms = _time.monotonic() * 1000
    _runs += 1
    if "held" in args:
        _time.sleep(args["held"])
        return {"firstLineMs": first_line_ms, "runs": _runs}
    return {**_recognise(args), "firstLineMs": first_line_ms, "runs": _runs}
`;

interface Request {
  /** From the request to the function's first line, ms. */
  firstLineMs: number;
  /** From the request to its answer, ms. */
  totalMs: number;
  /** Runs of its container up to this one. */
  runs: number;
  /** Whether the run had to wait for its code to be loaded. */
  loaded: boolean;
}

/**
 * The first request of an action in a new container, cold and in a container that was readied ahead. Annotation `warm`
 * loads libraries and models and reads a picture, work that a cold start does not do beforehand.
 */
async function measureReadied(
  api: Api,
  put: (name: string, code: string, entry: string) => Promise<void>,
  code: string,
  body: string,
  say: (line: string) => void,
): Promise<Measurement[]> {
  const cold: Request[] = [];
  const readied: Request[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    await put(`cold${sample}`, code + stamped, 'load');
    const first = await request(api, `cold${sample}`, body);
    cold.push(first);
    const next = await firstReadied(api, put, `readied${sample}`, code, body, say);
    readied.push(next);
    say(
      `  sample ${sample + 1}: first line after ${first.firstLineMs.toFixed(0)} ms cold, ${next.firstLineMs.toFixed(1)} ms`,
    );
  }
  const totals = (requests: readonly Request[]) => requests.map(({ totalMs }) => totalMs);
  return [
    medianOf('firstRequestColdMs', totals(cold)),
    medianOf('firstRequestReadiedMs', totals(readied)),
    medianOf(
      'firstLineColdMs',
      cold.map(({ firstLineMs }) => firstLineMs),
    ),
    medianOf(
      'firstLineReadiedMs',
      readied.map(({ firstLineMs }) => firstLineMs),
    ),
    medianOf(
      'inferenceSpeedup',
      cold.map(({ firstLineMs }, at) => firstLineMs / (readied[at]?.firstLineMs ?? NaN)),
    ),
    medianOf(
      'firstRequestSpeedup',
      cold.map(({ totalMs }, at) => totalMs / (readied[at]?.totalMs ?? NaN)),
    ),
  ];
}

/** The first request that a readied container serves; each attempt has an action of its own, and waits longer. */
async function firstReadied(
  api: Api,
  put: (name: string, code: string, entry: string) => Promise<void>,
  prefix: string,
  code: string,
  body: string,
  say: (line: string) => void,
): Promise<Request> {
  for (const seconds of heldS) {
    const name = `${prefix}-${seconds}`;
    await put(name, code + stamped, 'rehearse');
    await request(api, name, body);
    const next = await requestBesideHeld(api, name, body, seconds);
    if (next.runs === 1 && !next.loaded) return next;
    say(`  no container was readied for ${name} in ${seconds - leftS} s`);
  }
  throw new Error(`no container was readied for ${prefix} in any of ${heldS.length} attempts`);
}

/** A request that is sent while a run of `seconds` holds the action's first container. */
async function requestBesideHeld(api: Api, name: string, body: string, seconds: number): Promise<Request> {
  const holder = connectApi(api.baseUrl);
  try {
    const measure = async (): Promise<Request> => {
      await sleep((seconds - leftS) * 1000);
      return request(api, name, body);
    };
    const [next] = await Promise.all([measure(), request(holder, name, JSON.stringify({ held: seconds }))]);
    return next;
  } finally {
    holder.close();
  }
}

/** The clock of `time.monotonic()` in a function; wall clock time in milliseconds would be too coarse. */
const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;

async function request(api: Api, name: string, body: string): Promise<Request> {
  const sentMs = monotonicMs();
  const { status, text, elapsedMs } = await api.send('POST', invokePath(name, true), body);
  if (status !== 200) throw new Error(`${name} gave ${status}: ${text.slice(0, 500)}`);
  const { response, annotations } = JSON.parse(text) as {
    response: { result: { firstLineMs: number; runs: number } };
    annotations: { key: string }[];
  };
  const { firstLineMs, runs } = response.result;
  const loaded = annotations.some(({ key }) => key === 'initTime');
  return { firstLineMs: firstLineMs - sentMs, totalMs: elapsedMs, runs, loaded };
}
