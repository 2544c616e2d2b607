import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { isApiError } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Config } from '@gpuwhisk/common/config';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { apiRoot } from '../http/route.js';
import { jsonAnswer, knownError, textAnswer, writeAnswer } from '../http/answer.js';
import type { Answer } from '../http/answer.js';
import { ClientGoneError, checkDeclaredLength, parseArguments, readBody } from '../http/body.js';
import { logAnswered, transactionIdOf } from '../http/transaction.js';
import type { Identities } from '../authentication/identities.js';
import { createApi, deleteApi, getApi } from './manage-apis.js';
import type { ManagementContext, ManagementOperation } from './manage-apis.js';
import { createSubscription, deleteSubscription, getSubscriptions } from './manage-subscriptions.js';

/** The web actions of OpenWhisk's package `/whisk.system/apimgmt`, and ours for keys. */
const operations: Readonly<Record<string, ManagementOperation>> = {
  createApi,
  getApi,
  deleteApi,
  createSubscription,
  getSubscriptions,
  deleteSubscription,
};

/** Dependencies of route management's HTTP side. */
export interface ManagementDependencies {
  config: Pick<Config, 'limits'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  identities: Pick<Identities, 'authenticate'>;
}

const pattern = new RegExp(
  `^${apiRoot}/web/whisk\\.system/apimgmt/(${Object.keys(operations).join('|')})(\\.http|\\.json)?/?$`,
);

/**
 * Route management under the URLs of the web actions that OpenWhisk has for it: the returned function answers a
 * request and returns true, or leaves it alone.
 */
export function createManagementHandler(
  context: ManagementDependencies,
  management: ManagementContext,
): (request: IncomingMessage, response: ServerResponse) => boolean {
  const run = async (request: IncomingMessage, operation: ManagementOperation, search: string): Promise<JsonObject> => {
    const identity = await callerOf(context.identities, request.headers.authorization);
    const maxBytes = context.config.limits.maxPayloadBytes;
    checkDeclaredLength(request, maxBytes);
    const body = parseArguments(await readBody(request, maxBytes));
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
  /** With extension `.json`, an action's whole result is the body: OpenWhisk's have `{statusCode, headers, body}`. */
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

/** Who calls; wrong credentials are nobody's, as for every web action. */
async function callerOf(
  identities: ManagementDependencies['identities'],
  authorization: string | undefined,
): Promise<Identity | undefined> {
  try {
    return await identities.authenticate(authorization);
  } catch (error) {
    if (isApiError(error) && error.status === 401) return undefined;
    throw error;
  }
}
