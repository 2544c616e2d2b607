import { setTimeout as sleep } from 'node:timers/promises';
import { invokePath, type Api } from '../api.js';
import { medianOf, type Measurement } from '../bench.js';

const samples = 3;
const readyWithinMs = 60_000;

/** Notes when the function's first line runs, and which container it is. */
const stamped = `
import time as _time, uuid as _uuid
_recognise, _container = main, str(_uuid.uuid4())
def main(args):
    first_line_ms = _time.time() * 1000
    return {**_recognise(args), "firstLineMs": first_line_ms, "container": _container}
`;

interface Request {
  /** From the request to the function's first line, ms. */
  firstLineMs: number;
  /** From the request to its answer, ms. */
  totalMs: number;
  container: string;
}

/**
 * The first request of an action in a new container, cold and in one that was readied ahead (annotation `warm`:
 * libraries loaded, models too).
 */
export async function measureReadied(
  api: Api,
  put: (name: string, code: string) => Promise<void>,
  code: string,
  body: string,
  say: (line: string) => void,
): Promise<Measurement[]> {
  const cold: Request[] = [];
  const readied: Request[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const name = `readied${sample}`;
    await put(name, code + stamped);
    const first = await request(api, name, body);
    cold.push(first);
    const deadlineMs = performance.now() + readyWithinMs;
    for (;;) {
      // Busy with nothing, the first container leaves the next request to the other.
      await sleep(5000);
      const next = await request(api, name, body);
      if (next.container !== first.container) {
        readied.push(next);
        break;
      }
      if (performance.now() > deadlineMs) throw new Error(`no container was readied for ${name}`);
    }
    say(
      `  ${name}: first line after ${first.firstLineMs.toFixed(0)} ms cold, ${readied[sample]?.firstLineMs.toFixed(1)} ms`,
    );
  }
  return [
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

async function request(api: Api, name: string, body: string): Promise<Request> {
  const sentMs = Date.now();
  const { status, text, elapsedMs } = await api.send('POST', invokePath(name, true), body);
  if (status !== 200) throw new Error(`${name} gave ${status}: ${text.slice(0, 500)}`);
  const { response } = JSON.parse(text) as { response: { result: { firstLineMs: number; container: string } } };
  const { firstLineMs, container } = response.result;
  return { firstLineMs: firstLineMs - sentMs, totalMs: elapsedMs, container };
}
