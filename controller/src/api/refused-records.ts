import { deleteRefused, listRefused, readRefused } from '@gpuwhisk/common/activations/refused-records';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { jsonAnswer } from '../http/answer.js';
import { countParameter } from './admin-data.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters, queryParameters } from './descriptions.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Call, Route } from '../http/route.js';

/** Records of one answer, at most. */
const maxRows = 1000;

/** Activation records that the store refuses for good: for operators only. */
export function refusedRecordRoutes(context: Pick<ApiContext, 'store'>): Route[] {
  const { store } = context;
  const shared = { access: 'operator', tag: 'Administration' } as const;
  const all = `${apiRoot}/admin/refused-records`;
  const one = {
    path: `${all}/{namespace}/{activationId}`,
    parameters: pathParameters({ namespace: 'Namespace of the activation', activationId: 'Id of the activation' }),
  };
  const errors = errorResponses(400, 401, 403, 404, 500);
  const idOf = (call: Call): string => `${pathParameter(call, 'namespace')}/${pathParameter(call, 'activationId')}`;
  return [
    {
      ...shared,
      method: 'GET',
      path: all,
      operationId: 'getRefusedRecords',
      summary: 'Activation records that the store refuses, by id',
      parameters: queryParameters({
        after: 'Those behind this id',
        limit: `Records at most, up to ${maxRows}; default 200`,
      }),
      responses: { 200: { description: 'Records', schema: { arrayOf: 'RefusedRecord' } }, ...errors },
      handle: async (call: Call) => {
        const after = call.query.get('after') ?? '';
        const limit = countParameter(call, 'limit', 200, maxRows);
        return jsonAnswer((await listRefused(store, { after, limit })).map((record) => ({ ...record })));
      },
    },
    {
      ...shared,
      ...one,
      method: 'GET',
      operationId: 'getRefusedRecord',
      summary: 'A record as it was refused',
      responses: { 200: { description: 'The record', schema: 'Document' }, ...errors },
      handle: async (call: Call) => {
        const record = await readRefused(store, idOf(call)).catch((error: unknown) => {
          throw error instanceof NoDocumentError ? noSuchEntity() : error;
        });
        return jsonAnswer(record);
      },
    },
    {
      ...shared,
      ...one,
      method: 'DELETE',
      operationId: 'deleteRefusedRecord',
      summary: 'Delete a record that was refused',
      responses: { 200: { description: 'Deleted' }, ...errors },
      handle: async (call: Call) => {
        if (!(await deleteRefused(store, idOf(call)))) throw noSuchEntity();
        return jsonAnswer({});
      },
    },
  ];
}
