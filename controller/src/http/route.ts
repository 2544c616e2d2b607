import type { IncomingMessage } from 'node:http';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { entityNameProblem, namespaceNameProblem } from '@gpuwhisk/common/entities/names';
import { malformedPath, notAuthorized } from '@gpuwhisk/common/errors';
import type { Answer } from './answer.js';
import type { SchemaName } from '../schemas/schemas.js';

/** One request, as handlers see it. */
export interface Call {
  readonly request: IncomingMessage;
  readonly transactionId: string;
  /** The path's parameters, decoded. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/** A request with a known caller. */
export interface IdentifiedCall extends Call {
  readonly identity: Identity;
}

/** A request of a namespace or of an operator. */
export interface ViewerCall extends IdentifiedCall {
  readonly isOperator: boolean;
}

/** A parameter of a route, as the API documents describe it. */
export interface RouteParameter {
  name: string;
  in: 'path' | 'query';
  type: 'string' | 'integer' | 'boolean';
  description: string;
}

/** An answer of a route, as the API documents describe it. */
export interface RouteResponse {
  description: string;
  /** Absent: no JSON, or any. With `count`: a list, or for query parameter `count` an object with a number of this name. */
  schema?: SchemaName | { arrayOf: SchemaName; count?: string } | 'strings';
}

interface RouteDescription {
  method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  /** `{name}` stands for one segment. A trailing slash is part of the path. */
  path: string;
  /** OpenWhisk's name of the operation where it has one. */
  operationId: string;
  tag: string;
  summary: string;
  parameters?: readonly RouteParameter[];
  /** The JSON body of requests. */
  body?: { schema: SchemaName; required: boolean };
  /** Responses by status code; `default` describes all others. */
  responses: Readonly<Record<number, RouteResponse> & { default?: RouteResponse }>;
  /** Whether the same resource also has a path with a trailing slash. */
  trailingSlash?: boolean;
  /** Whether it stores data of the caller's namespace, which is refused (429) when that has stored as much as it may. */
  stores?: boolean;
  /** Whether its answers are streams of events. */
  streams?: boolean;
}

/** A route. The router and both API documents are made from routes. */
export type Route = RouteDescription &
  (
    | { access: 'open'; handle: (call: Call) => Answer | Promise<Answer> }
    /** Served without credentials, but not to sandboxes. */
    | { access: 'outside'; handle: (call: Call) => Answer | Promise<Answer> }
    | { access: 'identified'; handle: (call: IdentifiedCall) => Answer | Promise<Answer> }
    /** Served to namespaces and operators; operators may see more. */
    | { access: 'viewer'; handle: (call: ViewerCall) => Answer | Promise<Answer> }
    /** Served to operators only; others get 403. Not served to sandboxes. */
    | { access: 'operator'; handle: (call: IdentifiedCall) => Answer | Promise<Answer> }
    /** Answered before the router; further paths below it are free. */
    | { access: 'web' }
  );

/** Whether a route needs credentials. */
export function needsCredentials({ access }: Route): boolean {
  return access === 'identified' || access === 'viewer' || access === 'operator';
}

/** Header of requests that an invoker forwards for functions. It only removes rights, so that any caller may send it. */
export const fromSandbox = 'x-gpuwhisk-sandbox';

/** Whether a route is served to functions in sandboxes. */
export function isForSandboxes({ access }: Route): boolean {
  return access !== 'outside' && access !== 'operator';
}

/** Root path of the versioned API. */
export const apiRoot = '/api/v1';

/** A path parameter. Throws an Error if the route has no such parameter, which is a mistake in the table. */
export function pathParameter(call: Call, name: string): string {
  const value = call.params[name];
  if (value === undefined) throw new Error(`the route has no parameter '${name}'`);
  return value;
}

/** The namespace that the path names; `_` is the caller's own. Throws ApiError (400). */
export function namespaceOf(call: IdentifiedCall): string {
  const given = pathParameter(call, 'namespace');
  if (given === '_') return call.identity.namespace.name;
  const problem = namespaceNameProblem(given);
  if (problem !== undefined) throw malformedPath(problem);
  return given;
}

/** A path parameter that names an entity. Throws ApiError (400). */
export function entityNameOf(call: Call, parameter: string): string {
  const given = pathParameter(call, parameter);
  const problem = entityNameProblem(given);
  if (problem !== undefined) throw malformedPath(problem);
  return given;
}

/** Refuses entities of a namespace other than the caller's. Throws ApiError (403). */
export function checkOwner(call: IdentifiedCall, namespace: string, ...names: string[]): void {
  if (call.identity.namespace.name !== namespace) throw notAuthorized([namespace, ...names].join('/'));
}
