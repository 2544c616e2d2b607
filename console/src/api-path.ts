// The only place that makes addresses of requests: the key of the session goes with each of them.

/** The address, relative to the page, of a path below /api/v1. Throws a RefusedPath. */
export function apiUrl(path: string): string {
  checkPath(path);
  return `../api/v1/${path}`;
}

/** The address of what the server tells of itself to all. */
export const infoUrl = '../';

/**
 * Checks a path below /api/v1, with its query. Throws a RefusedPath if the path has a segment `.` or `..` once decoded,
 * leaves /api/v1, or enters /api/v1/web, where the code of other namespaces would see the user's key.
 */
export function checkPath(path: string): void {
  const [plain = ''] = path.split('?');
  let segments: string[];
  try {
    segments = decodeURIComponent(plain).split(/[/\\]/);
  } catch {
    throw new RefusedPath();
  }
  // Browsers drop tabs and line breaks, which may be within dots, from addresses.
  const isSafe = !/[\s#]/.test(plain) && !segments.includes('.') && !segments.includes('..');
  const first = segments
    .find((segment) => segment !== '')
    ?.trim()
    .toLowerCase();
  if (!isSafe || first === undefined || first === 'web') throw new RefusedPath();
}

/** The path of an activation below /api/v1. Throws a RefusedPath if the id is not of 32 hexadecimal digits. */
export function activationPath(id: string): string {
  if (!isActivationId(id)) throw new RefusedPath();
  return `namespaces/_/activations/${id}`;
}

/** Whether a text is the id of an activation. */
export function isActivationId(id: string): boolean {
  return /^[0-9a-f]{32}$/.test(id);
}

/** A path that the console requests in no case. */
export class RefusedPath extends Error {
  constructor() {
    super('There is nothing of this name: a part of the address is invalid.');
  }
}
