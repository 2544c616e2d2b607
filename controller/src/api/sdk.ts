import type { Answer } from '../http/answer.js';
import { dockerSkeleton } from '../sdk/docker-skeleton.js';
import type { Route } from '../http/route.js';

/** What `wsk sdk install` downloads. */
export function sdkRoutes(): Route[] {
  let skeleton: Answer | undefined;
  return [
    {
      method: 'GET',
      path: '/blackbox.tar.gz',
      access: 'open',
      operationId: 'getDockerSkeleton',
      tag: 'Info',
      summary: 'What an action in a Docker image starts from',
      responses: { 200: { description: 'A gzipped tar archive of the folder dockerSkeleton' } },
      handle: () => (skeleton ??= { status: 200, body: dockerSkeleton(), contentType: 'application/gzip' }),
    },
  ];
}
