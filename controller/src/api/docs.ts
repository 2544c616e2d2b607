import type { Answer } from '../http/answer.js';
import { emptyAnswer, jsonAnswer } from '../http/answer.js';
import { openApiDocument, swaggerDocument } from './api-documents.js';
import { docsPage } from './docs-page.js';
import { apiRoot } from '../http/route.js';
import type { Route } from '../http/route.js';

/** The API's descriptions of itself, made when first asked for. `routes` gives the whole table. */
export function docsRoutes(routes: () => readonly Route[]): Route[] {
  const once = (make: () => Answer): (() => Answer) => {
    let made: Answer | undefined;
    return () => (made ??= make());
  };
  return [
    {
      method: 'GET',
      path: `${apiRoot}/docs`,
      access: 'outside',
      operationId: 'getDocs',
      tag: 'Info',
      summary: 'Where the page about this API is',
      responses: { 308: { description: 'At the Location' } },
      handle: () => ({ ...emptyAnswer(308), headers: ['Location', `docs/index.html?url=${apiRoot}/api-docs`] }),
    },
    {
      method: 'GET',
      path: `${apiRoot}/docs/index.html`,
      access: 'outside',
      operationId: 'getDocsPage',
      tag: 'Info',
      summary: 'A page about this API',
      responses: { 200: { description: 'HTML' } },
      handle: () => ({ status: 200, body: docsPage, contentType: 'text/html; charset=UTF-8' }),
    },
    {
      method: 'GET',
      path: `${apiRoot}/api-docs`,
      trailingSlash: true,
      access: 'outside',
      operationId: 'getSwagger',
      tag: 'Info',
      summary: 'This API as Swagger 2.0',
      responses: { 200: { description: 'A Swagger 2.0 document' } },
      handle: once(() => jsonAnswer(swaggerDocument(routes()))),
    },
    {
      method: 'GET',
      path: `${apiRoot}/openapi.json`,
      access: 'outside',
      operationId: 'getOpenApi',
      tag: 'Info',
      summary: 'This API as OpenAPI 3.1',
      responses: { 200: { description: 'An OpenAPI 3.1 document' } },
      handle: once(() => jsonAnswer(openApiDocument(routes()))),
    },
  ];
}
