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

/** The text of a log line, without its prefix; expects the prefix. */
export function textOf(line: string): string {
  expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr): /);
  return line.slice('2026-01-01T00:00:00.000000000Z stdout: '.length);
}

/** A new container of `factory` after a successful `/init`. */
export async function initialized(factory: ContainerFactory, wanted: Partial<ContainerSpec> = {}): Promise<Container> {
  const container = await factory.create({ ...spec, ...wanted });
  const outcome = await container.init(initRequest(), limits).outcome;
  expect(outcome).toMatchObject({ type: 'ok' });
  return container;
}

/** Runs `value` with the usual limits; `changed` overrides them. */
export function run(container: Container, value: JsonObject, changed: Partial<CallLimits> = {}): Call {
  return container.run(runRequest(value), { ...limits, ...changed });
}

/** Cases that do not apply to a factory, with the reason. */
export type Skips = Partial<Record<'processes' | 'frames' | 'memory', string>>;

/** Helpers for the cases of the contract. */
export interface ContainerCases {
  /** The factory; available once opened, before the tests. */
  readonly factory: ContainerFactory;
  readonly skips: Skips;
  /** A test, skipped for the reason if there is one. */
  unless(reason: string | undefined, title: string, body: () => Promise<void>): void;
  /** Calls `use` with a new initialized container, which is destroyed afterwards. */
  using(use: (container: Container) => Promise<void>, wanted?: Partial<ContainerSpec>): Promise<void>;
}
