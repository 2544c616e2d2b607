import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, invokePath, type Api } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { repositoryDir } from '../paths.js';
import { startPlatform } from '../servers.js';
import { measureReadied } from './inference-readied.js';

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
      // One for each part: containers that idle hold the memory that readied ones would have.
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

/** One blocking invocation, ms. Throws unless it read the picture's text. */
async function recognise({ say }: BenchContext, api: Api, name: string, body: string): Promise<number> {
  const { status, text, elapsedMs } = await api.send('POST', invokePath(name, true), body);
  if (status !== 200) throw new Error(`${name} gave ${status}: ${text.slice(0, 500)}`);
  expectText(JSON.parse(text));
  say(`  ${name}: ${elapsedMs.toFixed(0)} ms`);
  return elapsedMs;
}

/** Invokes without waiting, and asks for the record until it is there. */
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
