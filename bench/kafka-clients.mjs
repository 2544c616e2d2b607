// node bench/kafka-clients.mjs: what a message costs by each client library of Kafka. One process sends messages of 800 bytes to a topic of
// a broker on this machine, without kafka.flush, and consumes them, one at a time and 64 at once. Prints medians of five runs, in
// alternation, as JSON: memory of the loaded library (MiB), and time of the clock and of the processor for a message (µs). Needs the built
// clone, and Kafka's packages, which `npm run test:all` installs.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startKafka } from '../scripts/engines/kafka.mjs';

const packages = { platformatic: '@platformatic/kafka', kafkajs: 'kafkajs' };
const runs = 5;
const runMs = 120_000;
const bytes = 800;
/** Messages of a run by how many are under way at once, after as many tenths to warm up. */
const messages = { 1: 2000, 64: 20_000 };
const MiB = 1024 * 1024;

/** Sends `count` messages with `atOnce` under way; resolves with µs a message, of the clock and of the processor. */
async function pass(bus, topic, arrived, count, atOnce) {
  const text = 'x'.repeat(bytes);
  const beganMs = performance.now();
  const before = process.cpuUsage();
  let left = count;
  const one = async () => {
    for (; left > 0;) {
      const number = --left;
      const comes = new Promise((resolve) => arrived.set(number, resolve));
      bus.send(topic, { number, text });
      await comes;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const { user, system } = process.cpuUsage(before);
  return { us: ((performance.now() - beganMs) * 1000) / count, cpuUs: (user + system) / count };
}

/** Measures one library in this process. */
async function measure(client, brokers) {
  const rss = process.memoryUsage.rss();
  await import(packages[client]);
  const figures = { loadedMiB: (process.memoryUsage.rss() - rss) / MiB };
  const [{ KafkaBus }, { systemClock }, { systemRandom }] = await Promise.all([
    import('@gpuwhisk/engines/kafka/kafka-bus'),
    import('@gpuwhisk/common/system/clock'),
    import('@gpuwhisk/common/system/random'),
  ]);
  const connection = { brokers: [brokers], clientId: 'bench' };
  const topicPrefix = `${client}${process.pid}.`;
  const bus = new KafkaBus({ client, connection, topicPrefix, flush: false, clock: systemClock, random: systemRandom });
  await bus.ensureTopic('t', { durable: true, maxPendingMessages: 10_000, maxPendingBytes: 64 * MiB });
  const arrived = new Map();
  await bus.subscribe('t', 'bench', { maxInFlight: 256 }, (delivery) => {
    const { number } = delivery.message;
    delivery.done();
    arrived.get(number)?.();
    arrived.delete(number);
  });
  for (const [atOnce, count] of Object.entries(messages)) {
    await pass(bus, 't', arrived, count / 10, Number(atOnce));
    const { us, cpuUs } = await pass(bus, 't', arrived, count, Number(atOnce));
    Object.assign(figures, { [`us${atOnce}`]: us, [`cpuUs${atOnce}`]: cpuUs });
  }
  await bus.close();
  return figures;
}

const median = (values) => values.sort((one, other) => one - other)[Math.floor(values.length / 2)];

async function compare() {
  const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-kafka-'));
  const kafka = await startKafka({ dir: folder });
  try {
    const found = Object.fromEntries(Object.keys(packages).map((client) => [client, []]));
    for (let run = 0; run < runs; run += 1) {
      for (const client of Object.keys(packages)) {
        const words = [fileURLToPath(import.meta.url), client, kafka.brokers];
        found[client].push(JSON.parse(execFileSync(process.execPath, words, { encoding: 'utf8', timeout: runMs })));
      }
    }
    for (const [client, all] of Object.entries(found)) {
      const medians = Object.keys(all[0]).map((name) => [name, Math.round(median(all.map((one) => one[name])))]);
      console.log(JSON.stringify({ client, ...Object.fromEntries(medians) }));
    }
  } finally {
    await kafka.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

const [client, brokers] = process.argv.slice(2);
if (client === undefined) await compare();
else {
  console.log(JSON.stringify(await measure(client, brokers)));
  process.exit(0);
}
