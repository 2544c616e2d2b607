// Descriptions of the API, and the skeleton that `wsk sdk install` downloads.
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import { noSuchRoute } from '@gpuwhisk/common/errors';
import type { Answer } from '../http/answer.js';
import { emptyAnswer, jsonAnswer } from '../http/answer.js';
import { apiRoot, needsCredentials } from '../http/route.js';
import type { Route, RouteParameter, RouteResponse } from '../http/route.js';
import { dockerSkeleton } from '../sdk/docker-skeleton.js';
import { schemas } from '../schemas/schemas.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { object, whole } from '../schemas/json-schema.js';

/** Routes to the API's own descriptions, generated at the first request. `routes` gives all routes. */
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
      summary: 'Address of the page about this API',
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

/** A page that shows the Swagger document that `?url=` names, of this server only. Its title is OpenWhisk's. */
const docsPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Swagger UI</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
  summary { cursor: pointer; }
  code { font-size: 14px; }
  .method { display: inline-block; font-weight: bold; width: 5em; }
</style>
</head>
<body>
<h1 id="title">API</h1>
<main></main>
<script>
  const asked = new URL(new URLSearchParams(location.search).get('url') ?? '/api/v1/api-docs', location.origin);
  const element = (name, text, ...children) => {
    const made = document.createElement(name);
    made.append(text, ...children);
    return made;
  };
  const method = (name) => Object.assign(element('span', name.toUpperCase()), { className: 'method' });
  function operation(path, name, { summary = '', parameters = [], responses = {} }) {
    const details = element('details', element('summary', method(name), element('code', path), ' ' + summary));
    const list = element('ul', '');
    for (const one of parameters) list.append(element('li', element('code', one.name), ' (' + one.in + ') ' + (one.description ?? '')));
    for (const [status, { description }] of Object.entries(responses)) list.append(element('li', status + ': ' + description));
    details.append(list);
    return details;
  }
  async function show() {
    if (asked.origin !== location.origin) throw new Error('only documents of this server are shown');
    const { info, basePath = '', paths } = await (await fetch(asked)).json();
    document.querySelector('#title').textContent = info.title + ' ' + info.version;
    for (const [path, operations] of Object.entries(paths))
      for (const [name, one] of Object.entries(operations)) document.querySelector('main').append(operation(basePath + path, name, one));
  }
  show().catch((error) => document.querySelector('main').append(element('p', 'The document cannot be shown: ' + error.message)));
</script>
</body>
</html>
`;

/** The routes of JSON schemas for editors. */
export function schemaRoutes({ readSchema }: Pick<ApiContext, 'readSchema'>): Route[] {
  return Object.entries(editorSchemas).map(([name, summary]) => ({
    method: 'GET',
    path: `${apiRoot}/schemas/${name}.json`,
    access: 'outside',
    operationId: `get${name[0]?.toUpperCase()}${name.slice(1)}Schema`,
    tag: 'Info',
    summary,
    responses: { 200: { description: 'A JSON schema, draft 2020-12' }, ...errorResponses(404) },
    handle: async () => {
      if (readSchema === undefined) throw noSuchRoute();
      return { status: 200, body: await readSchema(name), contentType: 'application/schema+json' };
    },
  }));
}

const editorSchemas: Readonly<Record<string, string>> = {
  gpu: 'JSON schema of annotation gpu',
  manifest: 'JSON schema of manifest.yaml',
};

/** The route that `wsk sdk install` downloads from. */
export function sdkRoutes(): Route[] {
  let skeleton: Promise<Answer> | undefined;
  return [
    {
      method: 'GET',
      path: '/blackbox.tar.gz',
      access: 'open',
      operationId: 'getDockerSkeleton',
      tag: 'Info',
      summary: 'Skeleton of an action in a Docker image',
      responses: { 200: { description: 'A gzipped tar archive of the folder dockerSkeleton' } },
      handle: () => (skeleton ??= skeletonAnswer()),
    },
  ];
}

async function skeletonAnswer(): Promise<Answer> {
  return { status: 200, body: await dockerSkeleton(), contentType: 'application/gzip' };
}

const about = {
  title: 'gpuwhisk',
  description: 'Functions on GPU servers, with the API of OpenWhisk',
  version: '1.0.0',
};

/** The routes of the versioned API, without the server's own (health, metrics). */
function documented(routes: readonly Route[]): Route[] {
  return routes.filter((route) => route.path.startsWith(`${apiRoot}/`));
}

/** The methods of each path, in the layout that both formats share. */
function pathsOf(routes: readonly Route[], describe: (route: Route) => JsonObject): JsonObject {
  const paths: { [path: string]: JsonObject } = {};
  for (const route of documented(routes)) {
    const path = route.path.slice(apiRoot.length);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route) };
  }
  return paths;
}

/** A copy of a schema whose references begin with `prefix`. */
function withReferences(value: JsonValue, prefix: string): JsonValue {
  if (Array.isArray(value)) return value.map((item) => withReferences(item, prefix));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      key === '$ref' && typeof inner === 'string' ? prefix + inner : withReferences(inner, prefix),
    ]),
  );
}

/**
 * The schema of a response. Swagger has no alternatives, so that a countable list is described as a list, as in OpenWhisk's
 * document.
 */
function responseSchema({ schema }: RouteResponse, prefix: string, alternatives: boolean): JsonObject | undefined {
  if (schema === undefined) return undefined;
  if (schema === 'strings') return { type: 'array', items: { type: 'string' } };
  if (typeof schema === 'string') return { $ref: prefix + schema };
  const listed: JsonObject = { type: 'array', items: { $ref: prefix + schema.arrayOf } };
  if (schema.count === undefined || !alternatives) return listed;
  return { oneOf: [listed, object({ [schema.count]: whole('With count=true: how many there are') }, [schema.count])] };
}

function common(route: Route): JsonObject {
  return { operationId: route.operationId, tags: [route.tag], summary: route.summary };
}

/** The API as Swagger 2.0. */
function swaggerDocument(routes: readonly Route[]): JsonObject {
  const prefix = '#/definitions/';
  const parameter = ({ name, in: place, type, description }: RouteParameter): JsonObject => ({
    name,
    in: place,
    type,
    description,
    required: place === 'path',
  });
  const paths = pathsOf(routes, (route) => {
    const parameters = (route.parameters ?? []).map(parameter);
    if (route.body !== undefined) {
      const { schema, required } = route.body;
      parameters.push({ name: 'body', in: 'body', required, schema: { $ref: prefix + schema } });
    }
    const responses = Object.entries(route.responses).map(([status, response]) => {
      const schema = responseSchema(response, prefix, false);
      return [status, { description: response.description, ...(schema !== undefined && { schema }) }];
    });
    return {
      ...common(route),
      produces: ['application/json'],
      ...(route.body !== undefined && { consumes: ['application/json'] }),
      parameters,
      responses: Object.fromEntries(responses) as JsonObject,
      ...(needsCredentials(route) && { security: [{ basicAuth: [] }] }),
    };
  });
  return {
    swagger: '2.0',
    info: about,
    basePath: apiRoot,
    securityDefinitions: { basicAuth: { type: 'basic' } },
    paths,
    definitions: withReferences(schemas, prefix),
  };
}

/** The API as OpenAPI 3.1. */
function openApiDocument(routes: readonly Route[]): JsonObject {
  const prefix = '#/components/schemas/';
  const json = (schema: JsonObject): JsonObject => ({ 'application/json': { schema } });
  const parameter = ({ name, in: place, type, description }: RouteParameter): JsonObject => ({
    name,
    in: place,
    description,
    required: place === 'path',
    schema: { type },
  });
  const paths = pathsOf(routes, (route) => {
    const responses = Object.entries(route.responses).map(([status, response]) => {
      const schema = responseSchema(response, prefix, true);
      return [status, { description: response.description, ...(schema !== undefined && { content: json(schema) }) }];
    });
    return {
      ...common(route),
      parameters: (route.parameters ?? []).map(parameter),
      ...(route.body !== undefined && {
        requestBody: { required: route.body.required, content: json({ $ref: prefix + route.body.schema }) },
      }),
      responses: Object.fromEntries(responses) as JsonObject,
      ...(needsCredentials(route) && { security: [{ basicAuth: [] }] }),
    };
  });
  return {
    openapi: '3.1.0',
    info: about,
    servers: [{ url: apiRoot }],
    paths,
    components: {
      securitySchemes: { basicAuth: { type: 'http', scheme: 'basic' } },
      schemas: withReferences(schemas, prefix),
    },
  };
}
