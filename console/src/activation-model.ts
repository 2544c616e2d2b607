// Actions and activations, as far as the console reads them.
import type { ColdStartRecord, GpuRecord, Placement, Rejection } from '@gpuwhisk/common/gpu';

/** A parameter or an annotation. */
export interface Pair {
  key: string;
  value: unknown;
}

/** An action. Lists leave out the code and, as OpenWhisk does, the kind, which annotation `exec` has, too. */
export interface Action {
  namespace: string;
  name: string;
  version: string;
  /** Epoch ms. */
  updated: number;
  publish: boolean;
  exec: { kind: string; code?: string; binary?: boolean; main?: string; image?: string; components?: string[] };
  parameters?: Pair[];
  annotations: Pair[];
  /** timeout ms, memory and logs MB. */
  limits: Record<string, number>;
}

/** An activation in a list; `end` and what follows from it are absent of triggers that were fired. */
export interface Brief {
  activationId: string;
  namespace: string;
  name: string;
  version: string;
  /** Epoch ms. */
  start: number;
  end?: number;
  /** ms, initialization included. */
  duration?: number;
  statusCode?: number;
  cause?: string;
  annotations: Pair[];
}

/** The record of an activation. */
export interface ActivationRecord extends Omit<Brief, 'statusCode'> {
  response: { status: string; statusCode?: number; success: boolean; result?: unknown; size?: number };
  logs: string[];
}

/** A decision of the GPU scheduler. */
export interface Decision {
  at: number;
  activationId: string;
  policy: string;
  placement?: Placement;
  reason: string;
  rejected: Rejection[];
}

/** The value of an annotation. */
export function annotationOf({ annotations }: { annotations: Pair[] }, key: string): unknown {
  return annotations.find((one) => one.key === key)?.value;
}

/** The number of an annotation; 0 where it is absent. */
function numberOf(record: { annotations: Pair[] }, key: string): number {
  const value = annotationOf(record, key);
  return typeof value === 'number' ? value : 0;
}

/** Where the time of an activation went, ms. */
export interface Times {
  /** From acceptance until its code was loaded or run. */
  waitMs: number;
  /** Loading of its code; 0 where it was loaded before. */
  startMs: number;
  runMs: number;
}

/** Where the time of an activation went. */
export function timesOf(record: Pick<Brief, 'annotations' | 'duration'>): Times {
  const startMs = numberOf(record, 'initTime');
  return { waitMs: numberOf(record, 'waitTime'), startMs, runMs: Math.max(0, (record.duration ?? 0) - startMs) };
}

/** What the platform recorded of its GPU. */
export function gpuOf(record: { annotations: Pair[] }): GpuRecord | undefined {
  return annotationOf(record, 'gpu') as GpuRecord | undefined;
}

/** The parts of its cold start. */
export function coldStartOf(record: { annotations: Pair[] }): ColdStartRecord | undefined {
  return annotationOf(record, 'coldStart') as ColdStartRecord | undefined;
}

const words = ['success', 'application error', 'developer error', 'platform error'];

/** Whether it was the run of a training job that ended because it was asked to. */
export function wasStopped(record: { annotations: Pair[] }): boolean {
  return (annotationOf(record, 'training') as { end?: unknown } | undefined)?.end === 'stopped';
}

/** How an activation ended, in words. */
export function statusWord(one: Pick<Brief, 'annotations' | 'statusCode'>): string {
  const { statusCode: code } = one;
  if (wasStopped(one)) return 'stopped';
  return code === undefined ? 'fired' : (words[code] ?? `status ${code}`);
}

/** The name of an action below its namespace, with its package: of its path, or of its annotation `path`. */
export function nameOf(record: { namespace: string; name: string; annotations: Pair[] }): string {
  const path = annotationOf(record, 'path');
  const full = typeof path === 'string' ? path : `${record.namespace}/${record.name}`;
  return full.split('/').slice(1).join('/');
}

/** A path of the API with each part encoded. */
export function pathOf(name: string): string {
  return name.split('/').map(encodeURIComponent).join('/');
}
