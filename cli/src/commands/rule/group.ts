import { nameSortFlag, pageFlags, type Command } from '../command.js';
import { list, summaryFlag } from '../entities.js';
import { create, disable, enable, get, removeRule, rules, status, update } from './rules.js';
import { withStatus } from './status.js';

const names = 'RULE_NAME TRIGGER_NAME ACTION_NAME';

/** `wsk rule`. */
export const ruleCommands: Command[] = [
  { name: 'create', argsUsage: names, summary: 'create new rule', flags: [], run: create },
  {
    name: 'delete',
    argsUsage: 'RULE_NAME',
    summary: 'delete rule',
    flags: [{ name: 'disable', type: 'bool', help: 'automatically disable rule before deleting it' }],
    run: removeRule,
  },
  { name: 'disable', argsUsage: 'RULE_NAME', summary: 'disable rule', flags: [], run: disable },
  { name: 'enable', argsUsage: 'RULE_NAME', summary: 'enable rule', flags: [], run: enable },
  { name: 'get', argsUsage: 'RULE_NAME', summary: 'get rule', flags: [summaryFlag('rule', '')], run: get },
  {
    name: 'list',
    argsUsage: '[NAMESPACE]',
    summary: 'list all rules',
    flags: [...pageFlags('rules'), nameSortFlag],
    run: (context) => list(context, rules, (namespace, found) => withStatus(context.client, namespace, found)),
  },
  { name: 'status', argsUsage: 'RULE_NAME', summary: 'get rule status', flags: [], run: status },
  {
    name: 'update',
    argsUsage: names,
    summary: 'update an existing rule, or create a rule if it does not exist',
    flags: [],
    run: update,
  },
];
