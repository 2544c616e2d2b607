import type { RouteParameter, RouteResponse } from '../http/route.js';

/** Descriptions that several routes share. */

export const namespaceParameter: RouteParameter = {
  name: 'namespace',
  in: 'path',
  type: 'string',
  description: "Namespace; '_' is the caller's own",
};
export const actionNameParameter: RouteParameter = {
  name: 'actionName',
  in: 'path',
  type: 'string',
  description: 'Name of the action',
};
export const packageNameParameter: RouteParameter = {
  name: 'packageName',
  in: 'path',
  type: 'string',
  description: 'Name of the package',
};
export const triggerNameParameter: RouteParameter = {
  name: 'triggerName',
  in: 'path',
  type: 'string',
  description: 'Name of the trigger',
};
export const ruleNameParameter: RouteParameter = {
  name: 'ruleName',
  in: 'path',
  type: 'string',
  description: 'Name of the rule',
};
export const activationIdParameter: RouteParameter = {
  name: 'activationId',
  in: 'path',
  type: 'string',
  description: 'Id of the activation',
};

const query = (name: string, type: RouteParameter['type'], description: string): RouteParameter => ({
  name,
  in: 'query',
  type,
  description,
});

export const listParameters: readonly RouteParameter[] = [
  query('limit', 'integer', 'Rows at most, 0 to 200; 0 is 200'),
  query('skip', 'integer', 'Rows to skip'),
  query('count', 'boolean', 'Only count the rows'),
];
export const activationFilters: readonly RouteParameter[] = [
  query('name', 'string', "Only activations of this action, 'name' or 'package/name'"),
  query('since', 'integer', 'Only activations that started at this time or later, epoch milliseconds'),
  query('upto', 'integer', 'Only activations that started at this time or earlier, epoch milliseconds'),
  query('docs', 'boolean', 'Whole records'),
];
export const codeParameter = query('code', 'boolean', 'Whether the answer holds the code');
export const overwriteParameter = query('overwrite', 'boolean', 'Update the entity if it exists');
export const forceParameter = query('force', 'boolean', 'Delete what the package contains, too');
export const invokeParameters: readonly RouteParameter[] = [
  query('blocking', 'boolean', 'Wait for the result'),
  query('result', 'boolean', 'Answer with the result only'),
  query('timeout', 'integer', 'Longest wait for the result, milliseconds'),
];

const errors: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not found',
  409: 'Conflict',
  413: 'Too large',
  422: 'Impossible',
  429: 'Too many requests',
  500: 'Server error',
  503: 'Overloaded',
  507: 'Disk full',
};

/** Parameters of a path, by name and description. */
export function pathParameters(described: Readonly<Record<string, string>>): RouteParameter[] {
  return Object.entries(described).map(([name, description]) => ({ name, in: 'path', type: 'string', description }));
}

/** Text parameters of a query, by name and description. */
export function queryParameters(described: Readonly<Record<string, string>>): RouteParameter[] {
  return Object.entries(described).map(([name, description]) => ({ name, in: 'query', type: 'string', description }));
}

/** The error answers with these statuses. */
export function errorResponses(...statuses: number[]): Record<number, RouteResponse> {
  return Object.fromEntries(
    statuses.map((status) => [status, { description: errors[status] ?? 'Error', schema: 'ErrorMessage' }]),
  );
}
