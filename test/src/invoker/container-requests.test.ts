import { expect, test } from '@jest/globals';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { containerWanted } from '@gpuwhisk/invoker/activation/container-requests';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';

const action: RunnableAction = {
  ...{ namespace: 'vendor/tools', name: 'act', version: '0.0.1', revision: '1-a', kind: 'nodejs:20' },
  ...{ runtime: 'nodejs:20', main: 'main', annotations: [], requirements: [], warm: { imports: [], cuda: false } },
  limits: { timeout: 1000, memory: 256, logs: 1, concurrency: 1 },
  code: () => Promise.reject(new Error('not needed')),
  isCurrent: () => Promise.resolve(true),
};

function message(path: string, more: Partial<ActivationMessage> = {}): ActivationMessage {
  return {
    transid: ['t', 0],
    action: { path, name: 'act' },
    revision: '1-a',
    user: {
      subject: 'caller',
      namespace: { name: 'caller', uuid: 'u' },
      authkey: { api_key: 'u:k' },
      rights: [],
      limits: {},
    },
    activationId: 'a',
    rootControllerIndex: { asString: '0', instanceType: 'controller' },
    ...{ blocking: false, initArgs: [], lockedArgs: {}, ...more },
  };
}

test('whose code it is follows the action, not the caller nor the binding', () => {
  const bound = message('vendor/tools', { action: { path: 'vendor/tools', name: 'act', binding: 'caller/link' } });
  expect(containerWanted(bound, action)).toMatchObject({ namespace: 'caller', codeOf: 'vendor' });
  const own = { ...action, namespace: 'caller' };
  expect(containerWanted(message('caller'), own)).toMatchObject({ namespace: 'caller', codeOf: 'caller' });
});

test('what is for execution only shares no container with what may be read, of the same action either', () => {
  const readable = containerWanted(message('vendor/tools'), action);
  const closed = containerWanted(message('vendor/tools', { executeOnly: true }), action);
  expect(closed.codeOf).not.toBe(readable.codeOf);
  expect(closed.key).not.toBe(readable.key);
  expect(containerWanted(message('vendor/tools'), action)).toEqual(readable);
});
