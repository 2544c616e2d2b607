import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument } from '@gpuwhisk/common/entities/action';
import { packageDocument } from '@gpuwhisk/common/entities/package';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';

const namespace = 'whisk.system';
const packageName = 'apimgmt';
const timeoutMs = 60_000;
const logsMiB = 10;

/** The actions of OpenWhisk's package, with the text for a caller that names no namespace, as OpenWhisk's have it. */
const actions = [
  {
    name: 'getApi',
    description: 'Retrieve the specified API configuration (in JSON format)',
    who: 'Invalid authentication.',
  },
  { name: 'createApi', description: 'Create an API', who: 'A valid auth key is required.' },
  { name: 'deleteApi', description: 'Delete the API', who: 'Invalid authentication.' },
];

/**
 * Code of an action that asks the API for the operation `name` with the key of its caller. A function that fails
 * with a text has that text as its error, as OpenWhisk's actions do.
 */
function codeOf(name: string, who: string): string {
  return `async function main(args) {
  const { __OW_API_HOST: host, __OW_API_KEY: key, __OW_NAMESPACE: own } = process.env;
  const { __ow_user: user = args.namespace, ...fields } = args;
  if (!user) throw ${JSON.stringify(who)};
  if (user !== own && user !== '_') throw 'The namespace ' + user + ' is not that of the key.';
  const response = await fetch(host + '/api/v1/web/${namespace}/${packageName}/${name}.http', {
    method: 'POST',
    headers: { authorization: 'Basic ' + btoa(key), 'content-type': 'application/json' },
    body: JSON.stringify(fields),
    signal: AbortSignal.timeout(${timeoutMs - 5000}),
  });
  const body = await response.json();
  if (!response.ok) throw body.error;
  return body;
}
`;
}

/**
 * Stores package `apimgmt` of whisk.system, whose actions manage routes for those who invoke them instead of requesting
 * their web addresses. What is there already stays, such as the package of an OpenWhisk. Resolves once all is stored.
 */
export async function storeManagementActions(
  store: ArtifactStore,
  clock: Clock,
  { kind, memoryMiB }: { kind: string; memoryMiB: number },
): Promise<void> {
  const common = { version: '0.0.1', publish: false, updated: clock.now(), parameters: [], revision: '' };
  const description = 'This package manages the gateway API configuration.';
  const documents = actions.map(({ name, description: about, who }) => {
    const action: WhiskAction = {
      ...common,
      namespace: `${namespace}/${packageName}`,
      name,
      exec: { kind, code: codeOf(name, who), binary: false },
      limits: { timeout: timeoutMs, memory: memoryMiB, logs: logsMiB, concurrency: 1 },
      annotations: [
        { key: 'description', value: about },
        // Not a web action: callers of those would act with the key of whisk.system.
        { key: 'provide-api-key', value: true },
        { key: 'exec', value: kind },
      ],
    };
    return actionDocument(action);
  });
  const annotations = [{ key: 'description', value: description }];
  const parent = packageDocument({ ...common, namespace, name: packageName, annotations });
  await store.createMany('whisks', [parent, ...documents]);
}
