import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { loadConfig } from '@gpuwhisk/common/config';
import { readImageCatalog } from '@gpuwhisk/invoker/containers/docker/image-catalog';

const fileOf = (name: string): string => fileURLToPath(new URL(`../../../docker/${name}`, import.meta.url));

interface Service {
  environment?: Record<string, string>;
  command?: string[];
  depends_on?: string[];
  volumes?: string[];
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

/** As `docker compose` reads it, with what must be set set. */
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
      const config = loadConfig({ env: environment ?? {} });
      expect(config).toMatchObject({
        containers: 'docker',
        kafka: { brokers: 'kafka:9092' },
        docker: { network: 'gpuwhisk-functions' },
      });
      expect(config.couchdb?.url).toBe('http://whisk:the-couchdb_password@couchdb:5984');
      expect(command).toContain(`--name=${name}`);
    }
  });

  test("keeps functions' containers away from the engines and the controllers", () => {
    const inBoth = Object.entries(services).filter(([, one]) => networksOf(one).includes('functions'));
    expect(inBoth.map(([name]) => name)).toEqual(['invoker0', 'invoker1', 'nginx']);
    expect(networks).toMatchObject({ functions: { name: 'gpuwhisk-functions' } });
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
    const [, asked = ''] = /proxy_pass http:\/\/\$(\w+):3233/.exec(readFileSync(fileOf('nginx.conf'), 'utf8')) ?? [];
    const answering = Object.entries(services).filter(([, { networks: joined = [] }]) =>
      Object.values(joined).some((one) => typeof one === 'object' && one.aliases?.includes(asked)),
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
