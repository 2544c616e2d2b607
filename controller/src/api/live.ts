// What GET routes answer, as it changes.
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { Route } from '../http/route.js';

/** The route to streams of what other routes answer. */
export function liveRoutes({ liveStreams }: Pick<ApiContext, 'liveStreams'>): Route[] {
  return [
    {
      method: 'GET',
      path: `${apiRoot}/live`,
      access: 'viewer',
      operationId: 'getLive',
      tag: 'Info',
      summary: 'What other paths answer, and each second what has changed of it, as server-sent events',
      parameters: [
        {
          name: 'of',
          in: 'query',
          type: 'string',
          description: 'Path of a GET below /api/v1, with its query; may be given up to 16 times',
        },
      ],
      responses: {
        200: {
          description:
            "Events 'value' (the whole answer), 'changes' (of a list: entries that are new or other, and keys of those that are gone), " +
            "'problem' (a path has another status than 200), 'beat' (a sign of life), 'end' (the stream ends, and why)",
        },
        ...errorResponses(400, 401, 403, 404, 429, 503),
      },
      streams: true,
      handle: (call) => liveStreams.open(call),
    },
  ];
}
