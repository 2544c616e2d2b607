import type { CompiledApi, PathSegment, Resource } from './compile-api.js';

/** A request's path below `/api/<tenant>`. */
export interface RequestPath {
  /** Decoded. */
  readonly segments: readonly string[];
  /** As they were sent. */
  readonly raw: readonly string[];
}

/**
 * Reads a path; empty segments do not count. Undefined for one that could mean two things to whoever decodes it
 * later: dots, encoded slashes, bad encoding.
 */
export function readPath(path: string): RequestPath | undefined {
  const raw = path.split('/').filter((segment) => segment !== '');
  const segments: string[] = [];
  for (const each of raw) {
    let segment: string;
    try {
      segment = decodeURIComponent(each);
    } catch (error) {
      if (error instanceof URIError) return undefined;
      throw error;
    }
    if (segment === '.' || segment === '..' || /[/\\]|\p{Cc}/u.test(segment)) return undefined;
    segments.push(segment);
  }
  return { segments, raw };
}

/** Where a request leads. */
export interface FoundRoute<Api extends { compiled: CompiledApi }> {
  readonly api: Api;
  readonly resource: Resource;
}

/**
 * The resource whose path the request's begins with: the longest, and among those of one length the one that has text
 * where others have parameters, leftmost first. What follows it is passed on, as by OpenWhisk's gateway.
 */
export function findRoute<Api extends { compiled: CompiledApi }>(
  apis: readonly Api[],
  segments: readonly string[],
): FoundRoute<Api> | undefined {
  let best: FoundRoute<Api> | undefined;
  for (const api of apis) {
    for (const resource of api.compiled.resources) {
      if (!beginsWith(segments, resource.segments)) continue;
      if (best === undefined || isCloser(resource.segments, best.resource.segments)) best = { api, resource };
    }
  }
  return best;
}

function beginsWith(segments: readonly string[], template: readonly PathSegment[]): boolean {
  return template.length <= segments.length && template.every((each, at) => each === null || each === segments[at]);
}

function isCloser(one: readonly PathSegment[], other: readonly PathSegment[]): boolean {
  if (one.length !== other.length) return one.length > other.length;
  for (const [at, segment] of one.entries()) {
    if ((segment === null) !== (other[at] === null)) return segment !== null;
  }
  return false;
}
