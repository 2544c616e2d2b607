import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, invokePath, type Api } from '../api.js';
import { medianOf, type Measurement } from '../bench.js';

const samples = 3;
const readyWithinMs = 120_000;
const betweenTriesMs = 5000;
/** A run that only waits keeps one container from taking the next request; s, and ms until it has surely begun. */
const heldS = 3;
const heldAfterMs = 500;

/** Notes when the function's first line runs, and how often its container was used. */
const stamped = `
import time as _time
_recognise, _runs = main, 0
def main(args):
    global _runs
    first_line_ms = _time.time() * 1000
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
    readied.push(await readiedRequest(api, name, body));
    say(
      `  ${name}: first line after ${first.firstLineMs.toFixed(0)} ms cold, ${readied[sample]?.firstLineMs.toFixed(1)} ms`,
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

/** The first request that a container serves which was readied ahead, while the others are kept from it. */
async function readiedRequest(api: Api, name: string, body: string): Promise<Request> {
  const deadlineMs = performance.now() + readyWithinMs;
  while (performance.now() < deadlineMs) {
    await sleep(betweenTriesMs);
    const holder = connectApi(api.baseUrl);
    try {
      const held = request(holder, name, JSON.stringify({ held: heldS }));
      await sleep(heldAfterMs);
      const next = await request(api, name, body);
      await held;
      if (next.runs === 1 && !next.loaded) return next;
    } finally {
      holder.close();
    }
  }
  throw new Error(`no container was readied for ${name}`);
}

async function request(api: Api, name: string, body: string): Promise<Request> {
  const sentMs = Date.now();
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
