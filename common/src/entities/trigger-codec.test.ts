import { describe, expect, test } from '@jest/globals';
import type { StoredDocument } from '../store/artifact-store.js';
import { EntityTypeError } from './names.js';
import { MalformedError } from './malformed.js';
import {
  readRule,
  ruleDocument,
  ruleToApi,
  readRuleStatus,
  readTrigger,
  triggerDocument,
  triggerToApi,
} from './trigger.js';

/** Documents as an OpenWhisk of 2024 writes them. */
const trigger: StoredDocument = {
  _id: 'guest/happened',
  _rev: '4-abc',
  namespace: 'guest',
  name: 'happened',
  parameters: [{ key: 'p', value: [1] }],
  limits: {},
  version: '0.0.4',
  publish: false,
  annotations: [{ key: 'feed', value: '/whisk.system/alarms/alarm' }],
  rules: {
    'guest/r1': { action: { path: 'guest/tools', name: 'echo' }, status: 'active' },
    'guest/r2': { action: { path: 'guest', name: 'plain' }, status: 'inactive' },
  },
  updated: 1700000000000,
  entityType: 'trigger',
};
const rule: StoredDocument = {
  _id: 'guest/r1',
  _rev: '1-abc',
  namespace: 'guest',
  name: 'r1',
  trigger: { path: 'guest', name: 'happened' },
  action: { path: 'guest/tools', name: 'echo' },
  version: '0.0.1',
  publish: false,
  annotations: [],
  updated: 1700000000000,
  entityType: 'rule',
};

function without(document: StoredDocument, ...fields: string[]): StoredDocument {
  const rest = { ...document };
  for (const field of fields) delete rest[field];
  return rest;
}

describe('triggers', () => {
  test.each([
    ['with rules', trigger],
    ['whose rules are gone', { ...trigger, rules: {} }],
    ['that never had a rule', without(trigger, 'rules')],
  ])('one %s is written as it was read', (_, document) => {
    const read = readTrigger(document);
    expect(triggerDocument(read)).toEqual(document);
    expect(triggerToApi(read)).toEqual(without(document, '_id', '_rev', 'entityType'));
  });

  test('an old document does not name its type', () => {
    expect(readTrigger(without(trigger, 'entityType')).name).toBe('happened');
  });

  test.each([
    ['a rule', rule, EntityTypeError],
    ['a rule that does not say so', without(rule, 'entityType'), EntityTypeError],
    ['an action', { ...without(trigger, 'entityType'), exec: {} }, EntityTypeError],
    ['something else', { ...trigger, entityType: 'other' }, MalformedError],
    ['rules of another form', { ...trigger, rules: { 'guest/r': 1 } }, MalformedError],
    ['a rule without an action', { ...trigger, rules: { 'guest/r': { status: 'active' } } }, MalformedError],
    ['an unknown status', { ...trigger, rules: { 'guest/r': { ...rule, status: 'odd' } } }, MalformedError],
  ])('%s is refused', (_, document, error) => {
    expect(() => readTrigger(document as StoredDocument)).toThrow(error);
  });
});

describe('rules', () => {
  test('one is written as it was read, and shown with or without its status', () => {
    const read = readRule(rule);
    expect(ruleDocument(read)).toEqual(rule);
    const shown = without(rule, '_id', '_rev', 'entityType');
    expect(ruleToApi(read)).toEqual(shown);
    expect(ruleToApi(read, 'active')).toEqual({ ...shown, status: 'active' });
  });

  test('old documents name targets plainly', () => {
    const read = readRule({ ...without(rule, 'entityType'), trigger: 'a trigger', action: 'an action' });
    expect(read.trigger).toEqual({ path: 'guest', name: 'a trigger' });
    expect(read.action).toEqual({ path: 'guest', name: 'an action' });
  });

  test.each([
    ['a trigger', trigger, EntityTypeError],
    ['no action', without(rule, 'action'), MalformedError],
    ['half an action', { ...rule, action: { name: 'a' } }, MalformedError],
  ])('%s is refused', (_, document, error) => {
    expect(() => readRule(document as StoredDocument)).toThrow(error);
  });
});

test('states of a rule', () => {
  expect(readRuleStatus(' active ')).toBe('active');
  expect(readRuleStatus('inactive')).toBe('inactive');
  expect(() => readRuleStatus('ACTIVE')).toThrow('requirement failed: ACTIVE is not a recognized rule state');
  expect(() => readRuleStatus(' ')).toThrow('requirement failed: argument undefined');
  expect(() => readRuleStatus(null)).toThrow(MalformedError);
});
