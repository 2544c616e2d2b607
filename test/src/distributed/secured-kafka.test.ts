// A platform whose Kafka uses TLS and requires a login.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasKafka, startKafka } from '../../../scripts/engines/kafka.mjs';
import type { RunningKafka } from '../../../scripts/engines/kafka.mjs';
import { startAndFail, startPlatform } from '../support/running-platform.js';

const startMs = 120_000;

/** A key and a certificate for 127.0.0.1, or undefined without openssl. */
function makeCertificate(folder: string): { key: string; cert: string } | undefined {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=broker', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const args = [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    ...subject,
    '-keyout',
    key,
    '-out',
    cert,
  ];
  try {
    execFileSync('openssl', args, { stdio: 'ignore' });
    return { key, cert };
  } catch {
    return undefined;
  }
}

const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-secured-kafka-'));
const certificate = makeCertificate(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

(hasKafka() && certificate !== undefined ? describe : describe.skip)(
  'a Kafka that encrypts and asks for a password',
  () => {
    let kafka: RunningKafka;
    const { key, cert } = certificate ?? { key: '', cert: '' };

    beforeAll(async () => {
      const store = join(folder, 'store.pem');
      writeFileSync(store, readFileSync(key, 'utf8') + readFileSync(cert, 'utf8'));
      const login = 'org.apache.kafka.common.security.plain.PlainLoginModule required';
      const users = 'username="broker" password="own" user_broker="own" user_whisk="secret"';
      const lines = [
        ...['ssl.keystore.type=PEM', `ssl.keystore.location=${store}`],
        ...['ssl.truststore.type=PEM', `ssl.truststore.location=${cert}`],
        ...['sasl.enabled.mechanisms=PLAIN', 'sasl.mechanism.inter.broker.protocol=PLAIN'],
        `listener.name.sasl_ssl.plain.sasl.jaas.config=${login} ${users};`,
      ];
      kafka = await startKafka({ dir: join(folder, 'kafka'), listener: { protocol: 'SASL_SSL', lines } });
    }, startMs);
    afterAll(() => kafka.kill());

    const flagsWith = (settings: Record<string, unknown>): string[] => [
      ...['--kafka', kafka.brokers, '--stem-cells', 'false'],
      ...Object.entries(settings).flatMap(([name, value]) => ['--set', `kafka.${name}=${JSON.stringify(value)}`]),
    ];
    const sasl = { mechanism: 'plain', username: 'whisk', password: 'secret' };

    test.each(['platformatic', 'kafkajs'])(
      'carries activations of who trusts its certificate and knows the password, by %s',
      async (client) => {
        const platform = await startPlatform({ flags: flagsWith({ client, tls: { ca: cert }, sasl }) });
        try {
          await platform.api.putAction('hello', 'function main({ n }) { return { n: n + 1 }; }');
          expect((await platform.api.invokeForResult('hello', { n: 1 })).body).toEqual({ n: 2 });
        } finally {
          await platform.stop();
        }
      },
      startMs,
    );

    test.each(['platformatic', 'kafkajs'])(
      'is not there for others, whose start says so, by %s',
      async (client) => {
        const starts = await Promise.all([
          startAndFail({ flags: flagsWith({ client, tls: { ca: cert }, sasl: { ...sasl, password: 'guessed' } }) }),
          startAndFail({ flags: flagsWith({ client, tls: {}, sasl }) }),
          startAndFail({ flags: flagsWith({ client, tls: { ca: join(folder, 'none.pem') }, sasl }) }),
        ]);
        const [unknown, untrusted, unreadable] = starts.map(({ stderr }) => stderr.trim());
        expect(unknown).toMatch(/^Kafka .*[Aa]uthentication/);
        expect(untrusted).toMatch(/^Kafka .*self-signed certificate/);
        expect(unreadable).toMatch(/^kafka\.tls\.ca: ENOENT/);
        for (const { code, stderr } of starts) {
          expect(code).toBe(1);
          expect(stderr).not.toContain('guessed');
        }
      },
      startMs,
    );
  },
);
