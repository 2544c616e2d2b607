import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { openApiDocument, swaggerDocument } from './api-documents.js';
import { apiRoot } from './route.js';
import type { Route } from './route.js';

/** The API's descriptions of itself, made when first asked for. `routes` gives the whole table. */
export function docsRoutes(routes: () => readonly Route[]): Route[] {
  const once = (make: () => Answer): (() => Answer) => {
    let made: Answer | undefined;
    return () => (made ??= make());
  };
  return [
    {
      method: 'GET',
      path: `${apiRoot}/api-docs`,
      trailingSlash: true,
      access: 'open',
      operationId: 'getSwagger',
      tag: 'Info',
      summary: 'This API as Swagger 2.0',
      responses: { 200: { description: 'A Swagger 2.0 document' } },
      handle: once(() => jsonAnswer(swaggerDocument(routes()))),
    },
    {
      method: 'GET',
      path: `${apiRoot}/openapi.json`,
      access: 'open',
      operationId: 'getOpenApi',
      tag: 'Info',
      summary: 'This API as OpenAPI 3.1',
      responses: { 200: { description: 'An OpenAPI 3.1 document' } },
      handle: once(() => jsonAnswer(openApiDocument(routes()))),
    },
  ];
}
