import { ApiError } from './errors.js';

/*
 * The texts of the API gateway and of its route management, which are apart from the table of errors.ts because they
 * travel in bodies of another form.
 */

/** A swagger document that the gateway cannot serve; the texts are those of OpenWhisk's gateway where it has one. */
export class SwaggerError extends Error {
  override name = 'SwaggerError';
}

/** 502: route management refuses. OpenWhisk's actions fail with this status for every cause. */
export const managementFailure = (text: string): ApiError => new ApiError(502, text);

/** The gateway behind OpenWhisk's route management refuses a document; its JSON is part of the text. */
export const notConfigured = (reason: string): string =>
  `Unable to configure the API Gateway (status code 400): ${JSON.stringify({ status: 400, message: `Error: ${reason}` })}`;
/** Route management where no gateway runs. */
export const gatewayOff = (): string => 'Unable to configure the API Gateway: it is turned off on this platform.';
/** A change that lost against others too often. */
export const changedMeanwhile = (): string => 'Concurrent modification to resource detected.';
/** A base path or name that no API has. */
export const noSuchApi = (basePathOrName: string): string => `API '${basePathOrName}' does not exist.`;
/** A path that the API lacks. */
export const noSuchPath = (path: string): string => `path '${path}' does not exist in the API`;
/** An operation that the path lacks. */
export const noSuchOperation = (path: string, operation: string): string =>
  `path '${path}' with operation '${operation}' does not exist in the API`;
/** More than all APIs of a namespace may have together. */
export const tooLargeApis = (
  found: { bytes: number; paths: number },
  allowed: { bytes: number; paths: number },
): string =>
  `The APIs of the namespace would have ${found.bytes} bytes and ${found.paths} paths; ` +
  `allowed are ${allowed.bytes} bytes and ${allowed.paths} paths.`;
/** More keys than one API may have. */
export const tooManySubscriptions = (allowed: number): string => `An API may have ${allowed} subscriptions at most.`;
/** A key that is none of the API's. */
export const noSuchSubscription = (): string => "Subscription doesn't exist";

/** 401: a key is needed, and there is none or a wrong one. */
export const unauthorized = (): ApiError => new ApiError(401, 'Unauthorized');
/** 401: a client id or secret is needed; `field` is the header or query parameter that lacks. */
export const credentialRequired = (field: string): ApiError => new ApiError(401, `${field} required`);
/** 401: a client id or secret is wrong. */
export const secretMismatch = (): ApiError => new ApiError(401, 'Secret mismatch or not subscribed to this api.');
/** 401: a token is needed. */
export const tokenMissing = (): ApiError =>
  new ApiError(401, 'No Authorization header provided', { headers: { 'WWW-Authenticate': 'Bearer' } });
/** 401: a token that does not hold; `reason` ends the sentence. */
export const tokenRefused = (reason: string): ApiError =>
  new ApiError(401, `The token was refused: ${reason}.`, {
    headers: { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
  });
/** 404: no API has this path. */
export const gatewayNotFound = (): ApiError => new ApiError(404, 'Not found.');
/** 404: the path has no such method; OpenWhisk's gateway does not answer 405. */
export const verbNotSupported = (): ApiError => new ApiError(404, 'Whoops. Verb not supported.');
/** 414 */
export const gatewayUriTooLong = (allowed: number): ApiError =>
  new ApiError(414, `The URI is longer than ${allowed} characters.`);
/** 429: the next window begins in `waitSeconds`. */
export const rateLimitExceeded = (waitSeconds: number): ApiError =>
  new ApiError(429, 'Rate limit exceeded', { headers: { 'Retry-After': String(waitSeconds) } });
/** 500: the API names a token issuer that is no longer configured, or its document is damaged. */
export const gatewayError = (): ApiError => new ApiError(500, 'Gateway error.');
/** The body that OpenWhisk's gateway has for what its backend, or it itself, failed at. */
export const gatewayFailureBody = (status: number): string =>
  `{"code":${status}, "message":"Oops. Something went wrong. Check your URI and try again."}\n`;
