import { actionNameParameter, namespaceParameter, packageNameParameter } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { Route, RouteParameter } from '../http/route.js';

const extensionParameter: RouteParameter = {
  name: 'extension',
  in: 'path',
  type: 'string',
  description: 'http, json, html, svg or text: how the result becomes an answer; http where absent',
};

const operations = [
  ['GET', 'getWebAction'],
  ['PUT', 'putWebAction'],
  ['DELETE', 'deleteWebAction'],
  ['POST', 'postWebAction'],
] as const;

/** Web actions, as the API documents describe them; web-handler.ts answers them. */
export function webRoutes(): Route[] {
  return operations.map(([method, operationId]) => ({
    method,
    path: `${apiRoot}/web/{namespace}/{packageName}/{actionName}.{extension}`,
    access: 'web',
    operationId,
    tag: 'Actions',
    summary: 'Call a web action',
    parameters: [
      namespaceParameter,
      { ...packageNameParameter, description: "Name of the package; 'default' where there is none" },
      actionNameParameter,
      extensionParameter,
    ],
    responses: {
      200: { description: 'What the action answers' },
      default: { description: 'What the action answers, with whatever status, or why it was not called' },
    },
    ...(method === 'POST' && { body: { schema: 'ActionPayload', required: false } }),
  }));
}
