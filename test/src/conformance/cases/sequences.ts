import { expect } from '@jest/globals';
import { logTexts } from '../../support/api-client.js';
import { expectComponents } from '../compositions.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo, fail, greet, head, join, logParameters, sleep, sort, split } from '../functions.js';
import { accepted, refused, valueOf } from '../trial.js';
import type { Activation, Trial } from '../trial.js';
import { pairs } from './json-arguments.js';
import { bindingOf } from './packages.js';

const lines = ['what time is it?', 'it is now'];
const payload = lines.join('\n');

/** The server's largest number of actions in a sequence. */
async function longest({ user }: Trial): Promise<number> {
  const { body } = await user.send<{ limits: { sequence_length: number } }>('GET', '/');
  return body.limits.sequence_length;
}

/** The log of a sequence's only component. */
async function loggedBy(t: Trial, sequence: string, given: object = {}): Promise<string[]> {
  const [component] = await expectComponents(t, await t.run(sequence, given), 1);
  return logTexts(component as Activation);
}

const components = (names: readonly string[]) => ({
  exec: { kind: 'sequence', components: names.map((name) => `/_/${name}`) },
});

const runs: Row[] = [
  {
    fact: 'the result of one action is the argument of the next; an error in the first argument is none',
    stands: 'WskSequenceTests: invoke a sequence with normal payload and payload with error field',
    run: async (t) => {
      const actions = [await t.action(split), await t.action(sort), await t.action(head), await t.action(join)];
      const name = await t.sequence(actions);
      const record = await t.run(name, { payload });
      await expectComponents(t, record, 4);
      expect(record.cause).toBeUndefined();
      expect(record.response.result).toEqual({ lines: ['it is now'], payload: 'it is now' });
      await t.replace(`actions/${name}`, components(actions.slice(0, 2)));
      for (const given of [{ payload }, { payload, error: 'irrelevant' }]) {
        const shorter = await t.run(name, given);
        await expectComponents(t, shorter, 2);
        expect(shorter.response.result).toEqual({ lines: [...lines].sort(), length: 2 });
      }
    },
  },
  {
    fact: 'a sequence within a sequence is one component',
    stands: 'WskSequenceTests: invoke a sequence with an enclosing sequence action',
    run: async (t) => {
      const inner = await t.sequence([await t.action(sort), await t.action(head)]);
      const name = await t.sequence([await t.action(split), inner, await t.action(join)]);
      const record = await t.run(name, { payload });
      const [, within] = await expectComponents(t, record, 3);
      expect(record.response.result).toEqual({ lines: ['it is now'], payload: 'it is now' });
      expect([valueOf(record.annotations, 'topmost'), valueOf(within?.annotations ?? [], 'topmost')]).toEqual([
        true,
        false,
      ]);
      await expectComponents(t, within as Activation, 2);
    },
  },
  {
    fact: 'a sequence that grew too long stops at the limit',
    stands: 'WskSequenceTests: replace atomic component in a sequence that is too long and report invoke error',
    run: async (t) => {
      const action = await t.action(echo);
      const inner = await t.sequence([action]);
      const name = await t.sequence([action, inner, action]);
      const before = await t.run(name, { payload });
      await expectComponents(t, before, 3);
      expect(before.response.result).toEqual({ payload });
      const limit = await longest(t);
      await t.replace(`actions/${inner}`, components(Array<string>(limit).fill(action)));
      const record = await t.run(name, { payload });
      expect(record.response).toMatchObject({
        status: 'application error',
        result: { error: 'Too many actions in the sequence.' },
      });
      const [, within] = await expectComponents(t, record, 2);
      expect(within?.logs).toHaveLength(limit - 1);
    },
  },
  {
    fact: 'parameters of packages and actions reach components, weaker than the argument',
    stands: 'WskSequenceTests: create and run a sequence in a package with parameters',
    run: async (t) => {
      const name = await t.package({ parameters: pairs({ payload: 'of the package' }) });
      const parameters = pairs({ payload: 'of the action' }) as { key: string; value: string }[];
      await t.action(greet, { parameters }, `${name}/hello`);
      const sequence = await t.sequence([`${name}/hello`]);
      expect(await loggedBy(t, sequence)).toEqual(['hello, of the action!']);
      expect(await loggedBy(t, sequence, { payload: 'given' })).toEqual(['hello, given!']);
      await t.replace(`actions/${name}/hello`, { parameters: pairs({ param: 'irrelevant' }) });
      expect(await loggedBy(t, sequence, { payload: 'given' })).toEqual(['hello, given!']);
      expect(await loggedBy(t, sequence)).toEqual(['hello, of the package!']);
    },
  },
  {
    fact: "parameters of a binding reach its provider's actions",
    stands: 'WskSequenceTests: run a sequence with an action in a package binding with parameters',
    run: async (t) => {
      const provider = await t.package({ parameters: pairs({ key1a: 'value1a', key1b: 'value1b' }) });
      const bound = await t.package({
        ...bindingOf(provider),
        parameters: pairs({ key2a: 'value2a', key1b: 'value2b' }),
      });
      await t.action(logParameters, { parameters: [{ key: 'key0', value: 'value0' }] }, `${provider}/print`);
      expect(await loggedBy(t, await t.sequence([`${bound}/print`]), { payload: 'now' })).toEqual([
        'key0: value0 key1a: value1a key1b: value2b key2a: value2a payload: now',
      ]);
    },
  },
  {
    fact: 'records name the binding that a sequence and its components were reached through',
    stands: 'WskSequenceTests: contain an binding annotation if invoked action is in a package binding',
    run: async (t) => {
      const provider = await t.package();
      const bound = await t.package(bindingOf(provider));
      await t.action(echo, {}, `${provider}/print`);
      await t.replace(`actions/${provider}/sequence`, components([`${bound}/print`]));
      const record = await t.run(`${bound}/sequence`);
      const [component] = await expectComponents(t, record, 1);
      for (const { annotations } of [record, component as Activation])
        expect(valueOf(annotations, 'binding')).toBe(`${t.namespace}/${bound}`);
    },
  },
  {
    fact: 'an error stops a sequence, and is its result',
    stands: 'WskSequenceTests: stop execution of a sequence (with no payload) on error',
    run: async (t) => {
      const record = await t.run(await t.sequence([await t.action(fail), await t.action(echo)]));
      await expectComponents(t, record, 1);
      expect(record.response).toMatchObject({ status: 'application error', success: false });
      expect(record.response.result).toEqual({ error: 'failed on purpose' });
    },
  },
  {
    fact: "a component's time-out is the sequence's result",
    stands: 'WskSequenceTests: propagate execution error (timeout) from atomic action to sequence',
    run: async (t) => {
      const hanging = await t.action('while (true) {}', { limits: { timeout: 500 } });
      const record = await t.run(await t.sequence([await t.action(echo), hanging]));
      await expectComponents(t, record, 2);
      expect(record.response.success).toBe(false);
      const error = 'The action exceeded its time limits of 500 milliseconds during initialization.';
      expect(record.response.result).toEqual({ error });
    },
  },
  {
    fact: 'a sequence goes on after its caller has stopped waiting',
    stands:
      'WskSequenceTests: execute a sequence in blocking fashion and finish execution even if longer than blocking response timeout',
    run: async (t) => {
      const name = await t.sequence([await t.action(echo), await t.action(sleep)]);
      const { status, body } = await t.invoke(name, { sleepMs: 500 }, 'blocking=true&timeout=100');
      expect([status, Object.keys(body)]).toEqual([202, ['activationId']]);
      const record = await t.record(body.activationId);
      await expectComponents(t, record, 2);
      expect(record.response).toMatchObject({ success: true, result: { slept: true } });
    },
  },
  {
    fact: 'a sequence is what a rule may invoke',
    stands:
      'WskSequenceTests: execute a sequence that is part of a rule and pass the trigger parameters to the sequence',
    run: async (t) => {
      const { trigger } = await t.linked(await t.sequence([await t.action(echo)]), {
        parameters: pairs({ payload: 'of the trigger' }),
      });
      for (const given of [{}, { payload: 'given' }]) {
        const [line = '{}'] = (await t.fire(trigger, given)).logs;
        const { activationId } = JSON.parse(line) as { activationId: string };
        const { response, cause } = await t.record(activationId);
        const expected = { payload: 'of the trigger', ...given, __ow_headers: expect.any(Object) };
        expect([response.result, cause]).toEqual([expected, undefined]);
      }
    },
  },
  {
    fact: 'a component may be updated while the sequence runs',
    stands: 'WskSequenceTests: run a sub-action even if it is updated while the sequence action is running',
    run: async (t) => {
      const last = await t.action(echo);
      const name = await t.sequence([await t.action(sleep, { parameters: [{ key: 'sleepMs', value: 700 }] }), last]);
      const { body } = await t.post(`actions/${name}`, {});
      for (const key of ['a', 'b']) {
        await t.replace(`actions/${last}`, { annotations: pairs({ [key]: true }) });
        expect((await t.invoke(last)).status).toBe(200);
      }
      expect((await t.record(body.activationId)).response.status).toBe('success');
    },
  },
  {
    fact: 'arrays pass from one action to the next',
    stands: 'WskSequenceTests: invoke a sequence which supports array result',
    run: async (t) => {
      const first = await t.action("function main({ payload }) { return payload.split('\\n'); }");
      const second = await t.action('function main(lines) { return lines.sort(); }');
      const record = await t.run(await t.sequence([first, second]), { payload: 'bbb\naaa\nccc' });
      await expectComponents(t, record, 2);
      expect([record.cause, record.response.result]).toEqual([undefined, ['aaa', 'bbb', 'ccc']]);
    },
  },
];

const bodies: Row[] = [
  {
    fact: '_ in components becomes the namespace; the parameters are the components',
    stands: 'WskRestActionSequenceTests: create, and get an action sequence',
    run: async (t) => {
      const shared = await t.package({ publish: true });
      await t.action(greet, {}, `${shared}/hello`);
      await t.action(join, {}, `${shared}/cat`);
      const name = await t.sequence([`${shared}/hello`, `${shared}/cat`]);
      const { body } = await t.get<{ exec: object; parameters: object }>(`actions/${name}`);
      const all = [`/${t.namespace}/${shared}/hello`, `/${t.namespace}/${shared}/cat`];
      expect(body.exec).toEqual({ kind: 'sequence', components: all });
      expect(body.parameters).toEqual([{ key: '_actions', value: all }]);
    },
  },
  {
    fact: 'no components: 400',
    run: async (t) =>
      refused(await t.put(`actions/${t.name('s')}`, components([])), 400, 'No component specified for the sequence.'),
  },
  {
    fact: 'a component that does not exist: 400',
    run: async (t) => {
      const reply = await t.put(`actions/${t.name('s')}`, components(['nonexistent']));
      refused(reply, 400, 'Sequence component does not exist.');
    },
  },
  {
    fact: 'too many components: 400',
    run: async (t) => {
      const names = Array<string>((await longest(t)) + 1).fill(await t.action(echo));
      refused(await t.put(`actions/${t.name('s')}`, components(names)), 400, /^Too many actions in the sequence\./);
    },
  },
  {
    fact: 'a sequence of itself, by way of another too: 400',
    run: async (t) => {
      const inner = await t.sequence([await t.action(echo)]);
      const outer = await t.sequence([inner]);
      for (const name of [inner, outer]) {
        const reply = await t.put(`actions/${inner}?overwrite=true`, components([name]));
        refused(reply, 400, 'Sequence may not refer to itself.');
      }
    },
  },
  {
    fact: 'parameters are dropped when a sequence becomes code',
    run: async (t) => {
      const name = await t.sequence([await t.action(echo)]);
      const body = accepted(
        await t.put(`actions/${name}?overwrite=true`, { exec: { kind: 'nodejs:default', code: echo } }),
      );
      expect(body.parameters).toEqual([]);
    },
  },
];

/** Sheet 4: sequences. */
export const sequenceCases = [
  ...table('sequences', 'core/controller/.../core/controller/actions/SequenceActions.scala', runs),
  ...table('sequence bodies', 'core/controller/.../core/controller/Actions.scala', bodies),
];
