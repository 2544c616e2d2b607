import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { expect } from '@jest/globals';
import { runWsk, withFolder, wskBinary } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { devicesOf } from './gpu-functions.js';
import type { ShownDevice } from './gpu-functions.js';
import { until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const soonMs = 30_000;

/** Actions and displays of an operator of GPUs. */
export interface GpuOperator {
  wsk(...words: string[]): Promise<WskResult>;
  stateOf(at: number): Promise<ShownDevice['health']>;
  uuidOf(at: number): Promise<string>;
  untilState(at: number, state: string): Promise<number>;
  /** Starts `wsk gpu workload run`; resolves with the first line that the command prints. */
  startWorkload(...words: string[]): Promise<{ wsk: ChildProcess; line: string; ended: Promise<void> }>;
  /** `cordon`, `drain` or `uncordon` of a device. */
  put(at: number, wish: string): Promise<void>;
}

/** The operator of a platform, which may be started later. */
export function operatorOf(platformOf: () => RunningPlatform): GpuOperator {
  const stateOf = async (at: number): Promise<ShownDevice['health']> => (await devicesOf(platformOf()))[at]!.health;
  const uuidOf = async (at: number): Promise<string> => (await devicesOf(platformOf()))[at]!.uuid;
  const untilState = (at: number, state: string): Promise<number> =>
    until(`device ${at} is ${state}`, async () => (await stateOf(at)).state === state, soonMs);
  const wsk = (...words: string[]) =>
    withFolder((directory) =>
      runWsk(['--apihost', platformOf().url, '--auth', platformOf().operatorAuth, ...words], { directory }),
    );
  /** Starts `wsk gpu workload run`; resolves with the first line that the command prints. */
  async function startWorkload(...words: string[]): Promise<{ wsk: ChildProcess; line: string; ended: Promise<void> }> {
    const flags = ['--apihost', platformOf().url, '--auth', platformOf().operatorAuth];
    const started = spawn(wskBinary, [...flags, 'gpu', 'workload', 'run', ...words], {
      env: { PATH: process.env.PATH, HOME: platformOf().dataDir },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = new Promise<void>((resolve) => started.once('exit', () => resolve()));
    const line = await new Promise<string>((resolve, reject) => {
      started.stdout.once('data', (text: Buffer) => resolve(text.toString().trim()));
      void ended.then(() => reject(new Error('wsk has ended.')));
    });
    return { wsk: started, line, ended };
  }
  const put = async (at: number, wish: string): Promise<void> => {
    expect(await wsk('gpu', wish, await uuidOf(at))).toMatchObject({ code: 0 });
  };
  return { wsk, stateOf, uuidOf, untilState, startWorkload, put };
}
