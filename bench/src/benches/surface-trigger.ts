import { setTimeout as sleep } from 'node:timers/promises';
import { smallBody, type Api } from '../api.js';
import { medianOf, type BenchContext, type Measurement } from '../bench.js';
import type { PartPlatform } from './part-platforms.js';

const rules = 100;
const action = 'fired';
const trigger = 'hundred';
const warmUps = 3;
const fires = 15;
/** All activations of a fire have to be recorded within this time, ms. */
const recordedWithinMs = 10_000;
const base = '/api/v1/namespaces/_';

/** A trigger with a hundred rules on one warm no-op action: from the POST to the start of the last activation. */
export async function measureTrigger({ say }: BenchContext, { api }: PartPlatform): Promise<Measurement[]> {
  await api.putAction(action);
  await api.invoke(action);
  await api.json('PUT', `${base}/triggers/${trigger}`, {});
  for (let rule = 0; rule < rules; rule += 1) {
    await api.json('PUT', `${base}/rules/rule${rule}`, { trigger: `/_/${trigger}`, action: `/_/${action}` });
  }
  for (let fired = 0; fired < warmUps; fired += 1) await fireOnce(api);

  const startedMs: number[] = [];
  const answeredMs: number[] = [];
  for (let fired = 0; fired < fires; fired += 1) {
    const sample = await fireOnce(api);
    startedMs.push(sample.startedMs);
    answeredMs.push(sample.answeredMs);
  }
  say(`  ${fires} fires, last start after ${startedMs.map((ms) => ms.toFixed(0)).join(' ')} ms`);
  return [medianOf('trigger100Ms', startedMs), medianOf('trigger100AnsweredMs', answeredMs)];
}

/** One fire, to the last record. Throws unless every rule's action ran. */
async function fireOnce(api: Api): Promise<{ startedMs: number; answeredMs: number }> {
  const postedMs = Date.now();
  const answer = await api.send('POST', `${base}/triggers/${trigger}`, smallBody);
  if (answer.status !== 202) throw new Error(`the fire was answered ${answer.status}: ${answer.text.slice(0, 500)}`);
  const { activationId } = JSON.parse(answer.text) as { activationId: string };
  const { logs } = (await api.json('GET', `${base}/activations/${activationId}`)) as { logs: string[] };
  const results = logs.map((line) => JSON.parse(line) as { success: boolean; activationId?: string });
  const failed = results.find(({ success }) => !success);
  if (results.length !== rules || failed) throw new Error(`not every rule ran: ${JSON.stringify(failed)}`);
  const expected = new Set(results.map((result) => result.activationId));

  for (const deadlineMs = performance.now() + recordedWithinMs; performance.now() < deadlineMs; await sleep(20)) {
    const query = `name=${action}&since=${postedMs}&limit=200`;
    const rows = (await api.json('GET', `${base}/activations?${query}`)) as { activationId: string; start: number }[];
    const starts = rows.filter((row) => expected.has(row.activationId)).map(({ start }) => start);
    if (starts.length === rules) {
      // A fire leaves nothing to do: the next one begins on an idle platform.
      await sleep(100);
      return { startedMs: Math.max(...starts) - postedMs, answeredMs: answer.elapsedMs };
    }
  }
  throw new Error(`not all ${rules} activations were recorded within ${recordedWithinMs} ms`);
}
