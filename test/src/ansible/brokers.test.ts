// Numbers and certificates of Kafka brokers, tested without a broker.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { playbook } from './playbooks.js';
import { hasAnsible } from './requirements.js';

const testMs = 120_000;
const template = fileURLToPath(new URL('../../../ansible/roles/kafka/templates/server.properties.j2', import.meta.url));
const onThisMachine = { ansible_connection: 'local', ansible_python_interpreter: '/usr/bin/python3' };

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-brokers-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Runs tasks on brokers given as `[name, number]`, in the inventory's order. Files are JSON, which is valid YAML. */
async function run(brokers: readonly (readonly [string, number])[], tasks: object): Promise<[number | null, string]> {
  const hosts = Object.fromEntries(
    brokers.map(([name, number], at) => [
      name,
      { ...onThisMachine, kafka_id: number, gpuwhisk_address: `10.0.0.${at + 1}` },
    ]),
  );
  const file = (name: string, content: object): string => {
    writeFileSync(join(folder, name), JSON.stringify(content));
    return join(folder, name);
  };
  const inventory = file('hosts.yml', { all: { children: { kafka: { hosts } } } });
  const play = file('play.yml', [{ hosts: 'kafka', gather_facts: false, ...tasks }]);
  const { code, output } = await playbook(play, inventory, []);
  return [code, output];
}

(hasAnsible ? test : test.skip)(
  'a broker keeps its number whatever the order of the inventory, and its certificate is for its address',
  async () => {
    const tasks = {
      roles: ['gpuwhisk'],
      // Passed as variables of the play: the role's defaults would override the inventory here.
      vars: { kafka_data_dir: '/var/lib/kafka', kafka_broker_password: 'secret' },
      tasks: [
        { include_role: { name: 'gpuwhisk', tasks_from: 'certificate' } },
        {
          template: {
            src: template,
            dest: `${folder}/{{ inventory_hostname }}.properties`,
          },
        },
      ],
    };
    const brokers = [
      ['one', 1],
      ['two', 2],
      ['three', 3],
    ] as const;
    for (const order of [brokers, [...brokers].reverse()]) {
      const [code, output] = await run(order, tasks);
      expect({ code, output }).toMatchObject({ code: 0 });
      for (const [name, number] of brokers) {
        const text = readFileSync(join(folder, `${name}.properties`), 'utf8');
        expect(text).toContain(`\nnode.id=${number}\n`);
        expect(/controller.quorum.voters=(.*)/.exec(text)?.[1]?.split(',').sort()).toEqual([
          '1@one:9093',
          '2@two:9093',
          '3@three:9093',
        ]);
        expect(text).not.toMatch(/PLAINTEXT/);
      }
    }
    const tls = join(folder, 'secrets', 'tls');
    const verified = spawnSync('openssl', [
      'verify',
      '-CAfile',
      join(tls, 'ca.crt'),
      '-verify_ip',
      '10.0.0.1',
      join(tls, 'one.crt'),
    ]);
    expect(verified.stdout.toString() + verified.stderr.toString()).toContain('one.crt: OK');
    for (const name of ['ca.key', 'one.key', 'one.pem']) expect(statSync(join(tls, name)).mode & 0o077).toBe(0);
  },
  testMs,
);

(hasAnsible ? test : test.skip)(
  'brokers that share a number are refused before anything is done',
  async () => {
    const [code, output] = await run(
      [
        ['one', 1],
        ['two', 1],
      ],
      { roles: ['kafka'] },
    );
    expect(code).toBe(2);
    expect(output).toContain('needs a kafka_id of its own, which never changes: 1, 1.');
    expect(output).toMatch(/one +: ok=\d+ +changed=0 /);
  },
  testMs,
);
