// Route management over HTTP, and the action documents at its URLs.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Config } from '@gpuwhisk/common/config';
import { maxPayloadFor } from '@gpuwhisk/common/entities/limits';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument } from '@gpuwhisk/common/entities/action';
import { packageDocument } from '@gpuwhisk/common/entities/package';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { apiRoot } from '../http/route.js';
import { jsonAnswer, knownError, textAnswer, writeAnswer } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import {
  ClientGoneError,
  checkDeclaredLength,
  parseArguments,
  readBody,
  logAnswered,
  transactionIdOf,
} from '../http/request.js';
import type { Identities } from '../authentication/authentication.js';
import type { Throttles } from '../entitlement/throttles.js';
import {
  createApi,
  deleteApi,
  getApi,
  createSubscription,
  deleteSubscription,
  getSubscriptions,
} from './manage-apis.js';
import type { ManagementContext, ManagementOperation } from './manage-apis.js';

/** The web actions of OpenWhisk's package `/whisk.system/apimgmt`, and our own for keys. */
const operations: Readonly<Record<string, ManagementOperation>> = {
  createApi,
  getApi,
  deleteApi,
  createSubscription,
  getSubscriptions,
  deleteSubscription,
};

/** Those that store more. */
const storing: readonly ManagementOperation[] = [createApi, createSubscription];

/** Dependencies of route management's HTTP side. */
interface ManagementDependencies {
  config: Pick<Config, 'limits'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  identities: Pick<Identities, 'find'>;
  throttles: Pick<Throttles, 'checkStored'>;
}

const pattern = new RegExp(
  `^${apiRoot}/web/whisk\\.system/apimgmt/(${Object.keys(operations).join('|')})(\\.http|\\.json)?/?$`,
);

/**
 * Serves route management under the URLs of OpenWhisk's web actions. The returned function answers a request and returns
 * true, or returns false.
 */
export function createManagementHandler(
  context: ManagementDependencies,
  management: ManagementContext,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const run = async (request: IncomingMessage, operation: ManagementOperation, search: string): Promise<JsonObject> => {
    const identity = await context.identities.find(request.headers.authorization);
    if (identity !== undefined && storing.includes(operation)) context.throttles.checkStored(identity);
    const bound = maxPayloadFor(context.config.limits, {});
    checkDeclaredLength(request, bound);
    const body = parseArguments(await readBody(request, bound, context.clock));
    const fields = { ...Object.fromEntries(new URLSearchParams(search)), ...body };
    return await operation(management, { fields, identity });
  };
  const answer = async (request: IncomingMessage, response: ServerResponse, called: Called): Promise<void> => {
    const startedMs = context.clock.monotonicMs();
    const transactionId = transactionIdOf(request, context.random);
    let given: Answer;
    try {
      given = webActionAnswer(called, 200, await run(request, called.operation, called.search));
    } catch (error) {
      if (error instanceof ClientGoneError) return;
      const { status, message } = knownError(error, transactionId, context.logger);
      const isFailure = status === 502;
      given = webActionAnswer(called, status, { error: message, ...(!isFailure && { code: transactionId }) });
    }
    writeAnswer(response, transactionId, given);
    logAnswered(context.logger, response, transactionId, context.clock.monotonicMs() - startedMs);
  };
  return (request, response) => {
    const called = readUrl(request.url ?? '');
    if (called === undefined) return false;
    if (request.method === 'OPTIONS') {
      writeAnswer(response, transactionIdOf(request, context.random), textAnswer('OK'));
    } else {
      void answer(request, response, called);
    }
    return true;
  };
}

interface Called {
  operation: ManagementOperation;
  /** Whether the body is the action's whole result, `{statusCode, headers, body}`, as with extension `.json`. */
  isWhole: boolean;
  search: string;
}

function readUrl(url: string): Called | undefined {
  const question = url.indexOf('?');
  const [, name = '', extension] = pattern.exec(question < 0 ? url : url.slice(0, question)) ?? [];
  const operation = Object.hasOwn(operations, name) ? operations[name] : undefined;
  if (operation === undefined) return undefined;
  return { operation, isWhole: extension === '.json', search: question < 0 ? '' : url.slice(question + 1) };
}

function webActionAnswer({ isWhole }: Called, status: number, body: JsonObject): Answer {
  if (!isWhole) return jsonAnswer(body, status);
  return jsonAnswer({ statusCode: status, headers: { 'Content-Type': 'application/json' }, body });
}

const namespace = 'whisk.system';
const packageName = 'apimgmt';
const timeoutMs = 60_000;
const logsMiB = 10;

/** The actions of OpenWhisk's package, with OpenWhisk's error for a caller without a namespace. */
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
 * Code of an action that calls the API's operation `name` with its caller's key. As in OpenWhisk's actions, a text that the
 * function rejects with becomes the error.
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
 * Stores package `apimgmt` of whisk.system. Its actions manage routes for callers that invoke them instead of using their
 * URLs. Existing documents are kept, such as those of an OpenWhisk installation. Resolves when all are stored.
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
        // Not a web action, as callers of one would act with the key of whisk.system.
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
