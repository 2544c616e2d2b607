import { expect } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import type {
  Call,
  CallLimits,
  Container,
  ContainerFactory,
  ContainerSpec,
} from '@gpuwhisk/invoker/containers/container-factory';
import { initRequest, limits, runRequest, spec } from '../container-calls.js';

/** The text of a log line, without its prefix; checks the prefix. */
export function textOf(line: string): string {
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr): /);
  return line.slice('2026-01-01T00:00:00.000000000Z stdout: '.length);
}

/** A container of `factory` that ran `/init`. */
export async function initialized(factory: ContainerFactory, wanted: Partial<ContainerSpec> = {}): Promise<Container> {
  const container = await factory.create({ ...spec, ...wanted });
  const outcome = await container.init(initRequest(), limits).outcome;
  expect(outcome).toEqual({ type: 'ok' });
  return container;
}

/** Runs `value` with the usual limits, changed by `changed`. */
export function run(container: Container, value: JsonObject, changed: Partial<CallLimits> = {}): Call {
  return container.run(runRequest(value), { ...limits, ...changed });
}

/** Cases that a factory cannot have, with the reason. */
export type Skips = Partial<Record<'processes' | 'frames' | 'memory', string>>;

/** What the cases of the contract are made with. */
export interface ContainerCases {
  /** Once it is open. */
  readonly factory: ContainerFactory;
  readonly skips: Skips;
  /** A test, skipped for the reason if there is one. */
  unless(reason: string | undefined, title: string, body: () => Promise<void>): void;
  /** Gives a fresh initialized container, destroyed afterwards. */
  using(use: (container: Container) => Promise<void>, wanted?: Partial<ContainerSpec>): Promise<void>;
}
