import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, invokePath, type Api } from '../api.js';
import { medianOf, type Measurement } from '../bench.js';

const samples = 3;
/** A run that only waits, s: it keeps the first container from the request for which another one is readied meanwhile. */
const heldS = 20;
const readyWithinMs = 15_000;

/** Notes when the function's first line runs, and how often its container was used. */
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
 * The first request of an action in a new container, cold and in one that was readied ahead (annotation `warm`: libraries
 * and models loaded, and a picture read, which no cold start would wait for).
 */
export async function measureReadied(
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
    const name = `readied${sample}`;
    await put(name, code + stamped, 'rehearse');
    await request(api, name, body);
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

/** The first request that a container serves which was readied ahead; to be called right after the action's first start. */
async function readiedRequest(api: Api, name: string, body: string): Promise<Request> {
  const holder = connectApi(api.baseUrl);
  try {
    const held = request(holder, name, JSON.stringify({ held: heldS }));
    await sleep(readyWithinMs);
    const next = await request(api, name, body);
    await held;
    if (next.runs !== 1 || next.loaded) throw new Error(`no container was readied for ${name}`);
    return next;
  } finally {
    holder.close();
  }
}

/** The clock of `time.monotonic()` in a function: milliseconds of wall clock time would be too coarse. */
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
