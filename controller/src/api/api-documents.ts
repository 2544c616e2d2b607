import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { isJsonObject } from '@gpuwhisk/common/json';
import { apiRoot, needsCredentials } from '../http/route.js';
import type { Route, RouteParameter, RouteResponse } from '../http/route.js';
import { schemas } from '../schemas/schemas.js';
import { object, whole } from '../schemas/json-schema.js';

const about = {
  title: 'gpuwhisk',
  description: 'Functions on GPU servers, with the API of OpenWhisk',
  version: '1.0.0',
};

/** Routes of the versioned API; the server's own (health, metrics) are not part of it. */
function documented(routes: readonly Route[]): Route[] {
  return routes.filter((route) => route.path.startsWith(`${apiRoot}/`));
}

/** The methods of each path, as both formats lay them out. */
function pathsOf(routes: readonly Route[], describe: (route: Route) => JsonObject): JsonObject {
  const paths: { [path: string]: JsonObject } = {};
  for (const route of documented(routes)) {
    const path = route.path.slice(apiRoot.length);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describe(route) };
  }
  return paths;
}

/** A copy of a schema with its references written as `prefix` wants. */
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

/** Swagger knows no alternatives: there a list that may be counted is a list, as in OpenWhisk's document. */
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
export function swaggerDocument(routes: readonly Route[]): JsonObject {
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
export function openApiDocument(routes: readonly Route[]): JsonObject {
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
