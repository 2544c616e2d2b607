import { cpSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { libraryFolder } from '../../../scripts/engines/kafka.mjs';
import { addPrograms, programPath } from './base-image.js';
import { base } from './built-images.js';
import type { DockerEngine } from './docker-engine.js';

const engines = fileURLToPath(new URL('../../../test/engines', import.meta.url));

/** Images in place of those of a registry, by the settings of docker/compose.yaml that name them. */
export const engineImages = {
  COUCHDB_IMAGE: 'gpuwhisk/test-couchdb:1',
  KAFKA_IMAGE: 'gpuwhisk/test-kafka:1',
  REDIS_IMAGE: 'gpuwhisk/test-redis:1',
  NGINX_IMAGE: 'gpuwhisk/test-nginx:1',
} as const;

/** Files of an image's build context besides those of its folder. */
const contents: Record<keyof typeof engineImages, (context: string) => void> = {
  COUCHDB_IMAGE: (context) => {
    for (const name of ['couchdb-server.cjs', 'couchdb-accounts.cjs', 'node_modules']) {
      cpSync(join(engines, name), join(context, name), { recursive: true });
    }
  },
  KAFKA_IMAGE: (context) => {
    mkdirSync(join(context, 'data'));
    cpSync(libraryFolder, join(context, 'libs'), { recursive: true });
  },
  REDIS_IMAGE: (context) => addPrograms(join(context, 'root'), [programPath('redis-server')]),
  NGINX_IMAGE: (context) => {
    const root = join(context, 'root');
    addPrograms(root, [programPath('nginx')]);
    for (const folder of ['etc/nginx', 'var/lib/nginx', 'var/log/nginx', 'run']) {
      mkdirSync(join(root, folder), { recursive: true });
    }
    writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n');
    writeFileSync(join(root, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  },
};

/**
 * Makes the images of CouchDB's protocol, Kafka, Redis and nginx on that of `buildImages`, which has the JDK of `java`.
 */
export async function buildEngineImages(engine: DockerEngine, java: RuntimeLaunch): Promise<void> {
  for (const [setting, image] of Object.entries(engineImages) as [keyof typeof engineImages, string][]) {
    const name = /test-(\w+)/.exec(image)?.[1] ?? '';
    const context = mkdtempSync(join(engine.folder, `${name}-`));
    cpSync(join(engines, 'images', name), context, { recursive: true });
    contents[setting](context);
    const told = [`BASE=${base}`, ...(name === 'kafka' ? [`JAVA=${java.command[0]}`] : [])];
    const flags = told.flatMap((argument) => ['--build-arg', argument]);
    await engine.docker(['build', '-q', ...flags, '-t', image, context], { DOCKER_BUILDKIT: '0' });
  }
}
