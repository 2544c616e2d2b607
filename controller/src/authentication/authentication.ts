import { createHash, timingSafeEqual } from 'node:crypto';
import type { Config } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { hasPublishedSecret } from '@gpuwhisk/common/entities/well-known-accounts';
import { notOfNamespace, operatorsOnly } from '@gpuwhisk/common/errors';
import { transactionLogger } from '@gpuwhisk/common/logging';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Call } from '../http/route.js';
import type { Identities } from './identities.js';

/** Who calls a route that namespaces and operators share. */
export interface ViewerIdentity {
  identity: Identity;
  isOperator: boolean;
}

/** Tells who sends a request, from its Authorization header. All reject with ApiError (401). */
export interface Authentication {
  /** An account of a namespace. Rejects with ApiError (403) for the operator's key, which has no namespace. */
  namespace(authorization: string | undefined): Promise<Identity>;
  /** An account of a namespace, or an operator. */
  viewer(authorization: string | undefined): Promise<ViewerIdentity>;
  /** An operator; what changes something is logged. Rejects with ApiError (403) for others. */
  operator(
    authorization: string | undefined,
    call: Pick<Call, 'request' | 'transactionId' | 'params'>,
  ): Promise<Identity>;
}

/**
 * The operator's key is in the configuration alone. Its name is none that a namespace could have, so that nothing of a
 * namespace is taken for the operator's.
 */
const keyHolder: Identity = {
  subject: '(operator)',
  namespace: { name: '(operator)', uuid: '(operator)' },
  authkey: { api_key: '' },
  rights: [],
  limits: {},
};

/**
 * Authentication on a listener that operators reach: by `operatorKey`, or as a subject that `operators` names. A key that
 * OpenWhisk's sources publish makes no operator, whatever the configuration says.
 */
export function authenticateOperators(
  identities: Identities,
  { operatorKey, operators }: Pick<Config, 'operatorKey' | 'operators'>,
  logger: Logger,
): Authentication {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  const expected = operatorKey === undefined ? undefined : digest(operatorKey);
  const isKey = (authorization: string | undefined): boolean => {
    const [, encoded] = /^basic +(\S+) *$/i.exec(authorization ?? '') ?? [];
    if (expected === undefined || encoded === undefined) return false;
    return timingSafeEqual(expected, digest(Buffer.from(encoded, 'base64').toString('utf8')));
  };
  const viewer = async (authorization: string | undefined): Promise<ViewerIdentity> => {
    if (isKey(authorization)) return { identity: keyHolder, isOperator: true };
    const identity = await identities.authenticate(authorization);
    const isOperator = operators.includes(identity.subject) && !hasPublishedSecret(identity.authkey.api_key);
    return { identity, isOperator };
  };
  return {
    namespace: async (authorization) => {
      const known = identities.cached(authorization);
      if (known !== undefined) return known;
      if (isKey(authorization)) throw notOfNamespace();
      return identities.authenticate(authorization);
    },
    viewer,
    async operator(authorization, { request, transactionId, params }) {
      const { identity, isOperator } = await viewer(authorization);
      if (!isOperator) throw operatorsOnly();
      if (request.method !== 'GET') {
        const line = { operator: identity.subject, method: request.method, params };
        transactionLogger(logger, transactionId, false).info(line, 'an operator changes the platform');
      }
      return identity;
    },
  };
}

/** Authentication on a listener that functions reach: no key is an operator's there. */
export function authenticateNamespaces(identities: Identities): Authentication {
  const namespace = (authorization: string | undefined): Promise<Identity> => identities.authenticate(authorization);
  return {
    namespace,
    viewer: async (authorization) => ({ identity: await namespace(authorization), isOperator: false }),
    operator: async (authorization) => {
      await namespace(authorization);
      throw operatorsOnly();
    },
  };
}
