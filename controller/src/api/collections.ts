import type { ViewName } from '@gpuwhisk/common/store/artifact-store';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { listAnswer, readOrRefuse } from '../http/list-answer.js';
import { booleanParameter, listRange, afterAll } from '../http/request.js';
import type { ApiContext } from './api-context.js';
import { checkOwner, namespaceOf } from '../http/route.js';
import type { IdentifiedCall } from '../http/route.js';

type Context = Pick<ApiContext, 'clock' | 'store' | 'logger'>;

/** A kind of entity in a namespace; also the name of its path and view. */
export type Collection = 'actions' | 'packages' | 'triggers' | 'rules';

/** Lists or counts the entities of one kind in the caller's namespace, last written first. Throws ApiError (400, 403). */
export async function listEntities(context: Context, call: IdentifiedCall, collection: Collection): Promise<Answer> {
  const path = namespaceOf(call);
  checkOwner(call, path);
  return listRows(context, call, { collection, view: collection, path });
}

/** The source of a list: a view's rows below a path (`ns` or `ns/pkg`), named by their collection. */
export interface ListSource {
  collection: Collection;
  view: ViewName;
  path: string;
}

/** Lists or counts the entities below a path that the caller may list, last written first. Throws ApiError (400). */
export async function listRows(
  context: Context,
  call: IdentifiedCall,
  { collection, view, path }: ListSource,
): Promise<Answer> {
  const { skip, limit } = listRange(call.query, collection);
  const reader = call.identity.namespace.uuid;
  const range = { view, startKey: [path, 0], endKey: [path, afterAll, afterAll] } as const;
  if (booleanParameter(call.query, 'count', false)) {
    const rows = await readOrRefuse(context.store.count('whisks', { ...range, reader }));
    return jsonAnswer({ [collection]: Math.max(0, rows - skip) });
  }
  // A rule's entry is its whole document, others' the value of the view.
  const as = collection === 'rules' ? 'entity' : 'value';
  return listAnswer(context.store.texts('whisks', { ...range, descending: true, skip, limit, as, reader }), context);
}
