import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { loadConfig } from '@gpuwhisk/common/config';
import { readImageCatalog } from '@gpuwhisk/invoker/containers/docker/images';

const fileOf = (name: string): string => fileURLToPath(new URL(`../../../docker/${name}`, import.meta.url));

interface Service {
  environment?: Record<string, string>;
  command?: string[];
  depends_on?: string[];
  volumes?: string[];
  network_mode?: string;
  cap_add?: string[];
  extra_hosts?: string[];
  ports?: string[];
  networks?: string[] | Record<string, { aliases?: string[] }>;
}

function networksOf({ networks = [] }: Service): string[] {
  return Array.isArray(networks) ? networks : Object.keys(networks);
}

interface Compose {
  services: Record<string, Service>;
  networks: object;
  volumes: object;
}

/** The file as `docker compose` reads it, with its required variables set. */
function readCompose(): Compose {
  const text = readFileSync(fileOf('compose.yaml'), 'utf8');
  const filled = text.replace(/\$\{(\w+)(?::-([^}]*)|:\?[^}]*)?\}/g, (_, name: string, otherwise?: string) =>
    otherwise === undefined ? `the-${name.toLowerCase()}` : otherwise,
  );
  return parse(filled, { merge: true }) as Compose;
}

describe('the compose file', () => {
  const { services, networks, volumes } = readCompose();

  test('has two controllers and two invokers with settings that there are', () => {
    const processes = Object.entries(services).filter(([, { command }]) =>
      /^(controller|invoker)$/.test(command?.[0] ?? ''),
    );
    expect(processes.map(([name]) => name)).toEqual(['controller0', 'controller1', 'invoker0', 'invoker1']);
    for (const [name, { command, environment }] of processes) {
      const key = environment?.GPUWHISK_OPERATOR_KEY;
      expect(key).toBe(command?.[0] === 'controller' ? 'the-operator_key' : undefined);
      const valid = `00000000-0000-4000-8000-000000000000:${'a'.repeat(64)}`;
      const config = loadConfig({
        env: { ...environment, ...(key !== undefined && { GPUWHISK_OPERATOR_KEY: valid }) },
      });
      expect(config).toMatchObject({
        containers: 'docker',
        kafka: { brokers: 'kafka:9092' },
        redis: { url: 'rediss://:the-redis_password@redis:6379/0' },
      });
      expect(config.docker.network).toBeUndefined();
      expect(config.kafka).toMatchObject({
        tls: { ca: '/etc/gpuwhisk/ca.crt' },
        sasl: { mechanism: 'plain', username: 'gpuwhisk', password: 'the-kafka_password' },
      });
      const account = name.startsWith('invoker')
        ? 'gpuwhisk-invoker:the-couchdb_invoker_password'
        : 'whisk:the-couchdb_password';
      expect(config.couchdb?.url).toBe(`https://${account}@couchdb:6984`);
      expect(command).toContain(`--name=${name}`);
    }
  });

  test('has invokers on the network of the host, where they set rules, and nothing else', () => {
    const onHost = Object.entries(services).filter(([, one]) => one.network_mode === 'host');
    expect(onHost.map(([name]) => name)).toEqual(['invoker0', 'invoker1']);
    const engines = ['couchdb', 'kafka', 'redis', 'nginx'];
    for (const [, { cap_add: added, extra_hosts: hosts = [] }] of onHost) {
      expect(added).toEqual(['NET_ADMIN']);
      const named = engines.map((name) => {
        const { backend } = services[name]?.networks as Record<string, { ipv4_address?: string }>;
        return `${name}:${backend?.ipv4_address}`;
      });
      expect(hosts).toEqual(named);
    }
    const published = Object.entries(services).filter(([, { ports }]) => ports !== undefined);
    expect(published.map(([name]) => name)).toEqual(['nginx']);
  });

  test('names services, networks and volumes that it has', () => {
    for (const service of Object.values(services)) {
      for (const name of service.depends_on ?? []) expect(Object.keys(services)).toContain(name);
      for (const name of networksOf(service)) expect(Object.keys(networks)).toContain(name);
      const named = (service.volumes ?? [])
        .map((volume) => volume.split(':')[0] ?? '')
        .filter((name) => !/^[./]/.test(name));
      for (const name of named) expect(Object.keys(volumes)).toContain(name);
    }
    const passed = readFileSync(fileOf('nginx.conf'), 'utf8').matchAll(/proxy_pass http:\/\/\$(\w+):(\d+)/g);
    const [[asked, port] = [], ...others] = [...passed].map(([, host, to]) => [host!, to]);
    expect([[asked, port], ...others]).toEqual(['3233', '3235'].map((to) => [asked, to]));
    expect(services.nginx?.ports).toEqual(['3233:3233', '3235:3235']);
    const answering = Object.entries(services).filter(([, { networks: joined = [] }]) =>
      Object.values(joined).some((one) => typeof one === 'object' && one.aliases?.includes(String(asked))),
    );
    expect(answering.map(([name]) => name)).toEqual(['controller0', 'controller1']);
  });
});

describe('the manifest of images', () => {
  test('says which image a kind is, and takes those as the engine has them', async () => {
    const catalog = await readImageCatalog(fileOf('runtimes.json'), ['mine/']);
    expect(catalog.imageOf('nodejs:22')).toBe('gpuwhisk/action-nodejs-v22:latest');
    expect(catalog.imageOf('blackbox:someone/image:3')).toBe('someone/image:3');
    expect(catalog.imageOf('cobol:1')).toBeUndefined();
    const local = ['gpuwhisk/action-python-v3.11:latest', 'mine/x', 'openwhisk/dockerskeleton:nightly'];
    expect(local.map((image) => catalog.isLocal(image))).toEqual([true, true, true]);
    expect(catalog.isLocal('someone/image:3')).toBe(false);
  });
});
