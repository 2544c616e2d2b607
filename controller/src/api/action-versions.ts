// The versions of an action before its present one.
import { actionToApi } from '@gpuwhisk/common/entities/action';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WantedVersion } from '../actions/action-store.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot } from '../http/route.js';
import { timeParameter } from '../http/request.js';
import type { IdentifiedCall, Route } from '../http/route.js';
import { checkExec, mergeContext, writableAction } from './actions.js';
import type { ActionContext } from './actions.js';
import {
  actionNameParameter,
  errorResponses,
  namespaceParameter,
  packageNameParameter,
  queryParameters,
} from './descriptions.js';

/** Query parameters `version` and `updated`. Throws ApiError (400). */
function wantedVersion({ query }: IdentifiedCall): WantedVersion {
  return { version: query.get('version') ?? undefined, updated: timeParameter(query, 'updated') };
}

async function getVersions(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const { namespace, name } = await writableAction(context, call);
  const wanted = wantedVersion(call);
  const { actionWriter } = context;
  if (wanted.version === undefined) {
    const versions = await actionWriter.versions(namespace, name);
    return jsonAnswer(versions.map((one) => actionToApi(one, { code: false })));
  }
  const read = (): Promise<WhiskAction> => actionWriter.readVersion(namespace, name, wanted);
  // Its size is known once it has been read.
  return context.largeCodes.answer(call.identity.namespace.name, true, read, 'list');
}

async function restore(context: ActionContext, call: IdentifiedCall): Promise<Answer> {
  const { namespace, name, inherited, write } = await writableAction(context, call);
  const place = { namespace, name, wanted: wantedVersion(call) };
  const merge = mergeContext(context, call, inherited);
  return context.largeCodes.answer(call.identity.namespace.name, true, async () => {
    const written = await write(() =>
      context.actionWriter.restore(place, merge, (exec) => checkExec(context, call, `${namespace}/${name}`, exec)),
    );
    context.performanceData.trials.written(written, merge.nowMs);
    return written;
  });
}

const updated = 'Where several versions have the number: its time, epoch ms';

/**
 * Routes to the versions of actions. They lie beside `actions`, below which OpenWhisk's paths name packages and their
 * actions, whatever these are called.
 */
export function actionVersionRoutes(context: ActionContext): Route[] {
  const path = `${apiRoot}/namespaces/{namespace}/versions`;
  const places = [
    { end: '', path: `${path}/{actionName}`, names: [namespaceParameter, actionNameParameter] },
    {
      end: 'InPackage',
      path: `${path}/{packageName}/{actionName}`,
      names: [namespaceParameter, packageNameParameter, actionNameParameter],
    },
  ];
  return places.flatMap(({ end, path: at, names }): Route[] => [
    {
      method: 'GET',
      path: at,
      access: 'identified',
      tag: 'Actions',
      operationId: `getActionVersions${end}`,
      summary: 'The present version of an action and up to ten before it, the newest first',
      parameters: [...names, ...queryParameters({ version: 'Only this version, with its code', updated })],
      responses: {
        200: { description: 'Versions', schema: { arrayOf: 'Action' } },
        ...errorResponses(400, 401, 403, 404, 409, 429, 500),
      },
      handle: (call) => getVersions(context, call),
    },
    {
      method: 'POST',
      stores: true,
      path: at,
      access: 'identified',
      tag: 'Actions',
      operationId: `restoreActionVersion${end}`,
      summary: 'Make code and settings of an earlier version the present ones, under a new version number',
      parameters: [
        ...names,
        ...queryParameters({
          version: 'Version to restore; default: the one before the present one',
          updated,
        }),
      ],
      responses: {
        200: { description: 'The action', schema: 'Action' },
        ...errorResponses(400, 401, 403, 404, 409, 500),
      },
      handle: (call) => restore(context, call),
    },
  ]);
}
