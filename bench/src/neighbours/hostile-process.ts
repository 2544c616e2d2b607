// The process of the hostile namespaces: it sends their requests, so that they do not delay the victim's. Its parent sends
// HostileOrders, and is sent HostileNews.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { headersOf } from '../api.js';
import { burn, loads, type Load, type Send } from './loads.js';

/** What the parent asks for. */
export type HostileOrder =
  | { do: 'prepare'; load: string; url: string; keys: readonly string[] }
  | { do: 'burn'; url: string; keys: readonly string[]; cores: number; seconds: number }
  | { do: 'strike' }
  | { do: 'stop' };

/** What the process tells when it has done as asked; `failed` ends it. */
export type HostileNews = { done: 'prepared' | 'struck' } | { done: 'stopped'; load: StruckLoad } | { failed: string };

/** What a load came to. */
export interface StruckLoad {
  /** Strikes by the status of their last answer; 0: none. */
  statuses: Readonly<Record<number, number>>;
  /** Strikes that were left out because too many were under way. */
  heldBack: number;
}

const tickMs = 10;
const timeoutMs = 120_000;

function sendAs(agent: Agent, url: string, key: string): Send {
  const headers = headersOf(key);
  return (method, path, body = '') =>
    new Promise((resolve, reject) => {
      const parts = typeof body === 'string' ? [Buffer.from(body)] : body;
      const length = parts.reduce((sum, part) => sum + part.length, 0);
      const options = {
        agent,
        method,
        headers: { ...headers, ...(length > 0 && { 'content-length': length }) },
        timeout: timeoutMs,
      };
      const outgoing = request(new URL(path, url), options, (incoming) => {
        incoming.resume();
        incoming.once('error', reject);
        incoming.once('end', () => resolve(incoming.statusCode ?? 0));
      });
      outgoing.once('timeout', () => outgoing.destroy(new Error(`${method} ${path}: no answer in ${timeoutMs} ms`)));
      outgoing.once('error', reject);
      for (const part of parts) outgoing.write(part);
      outgoing.end();
    });
}

/** Strikes as often as the load says until `signal`, then breaks off what is under way. */
async function strike(load: Load, sends: readonly Send[], agent: Agent, signal: AbortSignal): Promise<StruckLoad> {
  const statuses: Record<number, number> = {};
  const open = new Set<Promise<unknown>>();
  const beganMs = performance.now();
  let [due, heldBack] = [0, 0];
  while (!signal.aborted) {
    const owed = Math.ceil(((performance.now() - beganMs) / 1000) * load.perS);
    for (; due < owed; due += 1) {
      if (open.size >= load.mostOpen) {
        heldBack += 1;
        continue;
      }
      const count = (status: unknown): void => void (statuses[Number(status)] = (statuses[Number(status)] ?? 0) + 1);
      // A strike without an answer counts as such: the platform may cut off a hostile namespace.
      const struck = load.strike(sends[due % sends.length] as Send, due).then(count, () => count(0));
      open.add(struck);
      void struck.then(() => open.delete(struck));
    }
    await sleep(tickMs);
  }
  agent.destroy();
  await Promise.all(open);
  return { statuses, heldBack };
}

function tell(news: HostileNews): void {
  process.send?.(news);
}

const agent = new Agent({ keepAlive: true });
const stopped = new AbortController();
let sends: readonly Send[] = [];
let load: Load | undefined;

async function obey(order: HostileOrder): Promise<void> {
  if (order.do === 'stop') stopped.abort();
  else if (order.do === 'strike') {
    const idle: Load = { perS: 0, mostOpen: 0, prepare: () => Promise.resolve(), strike: () => Promise.resolve() };
    const struck = strike(load ?? idle, sends, agent, stopped.signal);
    tell({ done: 'struck' });
    tell({ done: 'stopped', load: await struck });
    process.disconnect();
  } else {
    sends = order.keys.map((key) => sendAs(agent, order.url, key));
    if (order.do === 'burn') await burn(sends, order.cores, order.seconds);
    else {
      load = loads[order.load];
      for (const send of sends) await load?.prepare(send);
    }
    tell({ done: 'prepared' });
  }
}

process.on('message', (order: HostileOrder) => {
  obey(order).catch((error: unknown) => {
    tell({ failed: String(error) });
    process.disconnect();
  });
});
