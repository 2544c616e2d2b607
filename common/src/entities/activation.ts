import type { JsonValue } from '../json.js';
import type { Parameter } from './parameters.js';

/** OpenWhisk's status codes of an activation. */
export const ActivationStatus = {
  success: 0,
  applicationError: 1,
  developerError: 2,
  whiskError: 3,
} as const;
/** One of them. */
export type ActivationStatusCode = (typeof ActivationStatus)[keyof typeof ActivationStatus];

/** The words that the API uses for the status codes, indexed by code. */
export const activationStatusWords = [
  'success',
  'application error',
  'action developer error',
  'whisk internal error',
] as const;

/** The stored form of an activation's response. `size` is the result's length in bytes where known. */
export interface ActivationResponse {
  statusCode: ActivationStatusCode;
  result?: JsonValue;
  size?: number;
}

/** An activation record, as stored (without `_id`, `entityType` and `updated`). Times are epoch ms. */
export interface WhiskActivation {
  namespace: string;
  name: string;
  version: string;
  subject: string;
  activationId: string;
  start: number;
  end: number;
  /** ms, initialization included. */
  duration?: number;
  cause?: string;
  response: ActivationResponse;
  logs: string[];
  publish: boolean;
  annotations: Parameter[];
}
