import { describeCases, errorWithHint, printed } from './cases.js';
import type { Answer } from './fake-openwhisk.js';

const notThere: Answer = [404, { error: 'The requested resource does not exist.', code: 'tid1' }];
const rule = {
  action: { name: 'a', path: 'guest' },
  trigger: { name: 't', path: 'guest' },
  annotations: [],
  name: 'r',
  namespace: 'guest',
  publish: false,
  status: 'active',
  updated: 7,
  version: '0.0.1',
};
const rulePrinted = printed({
  namespace: 'guest',
  name: 'r',
  version: '0.0.1',
  status: 'active',
  trigger: rule.trigger,
  action: rule.action,
  publish: false,
  updated: 7,
});
const nameRequired = errorWithHint('Invalid argument(s). A rule name is required.');
const setTo = (status: string): string => `POST /rules/r {"status":"${status}","trigger":null,"action":null}`;

describeCases('rule create, update', [
  {
    wsk: 'rule create r t pkg/a',
    answers: [[200, rule]],
    requests: ['PUT /rules/r?overwrite=false {"name":"r","status":"","trigger":"/_/t","action":"/_/pkg/a"}'],
    stdout: 'ok: created rule r',
  },
  {
    wsk: 'rule update r /ns/t /ns/pkg/a',
    answers: [[200, rule]],
    requests: ['PUT /rules/r?overwrite=true {"name":"r","status":"","trigger":"/ns/t","action":"/ns/pkg/a"}'],
    stdout: 'ok: updated rule r',
  },
  {
    wsk: 'rule create r t a',
    answers: [notThere],
    requests: ['PUT /rules/r?overwrite=false {"name":"r","status":"","trigger":"/_/t","action":"/_/a"}'],
    code: 148,
    stderr: "error: Unable to create rule 'r': The requested resource does not exist. (code tid1)",
  },
  {
    wsk: 'rule create r t',
    code: 1,
    stderr: errorWithHint('Invalid argument(s). A rule, trigger and action name are required.'),
  },
  {
    wsk: 'rule update r t a b',
    code: 1,
    stderr: errorWithHint('Invalid argument(s): b. A rule, trigger and action name are required.'),
  },
]);

describeCases('rule get, status, enable, disable, delete', [
  {
    wsk: 'rule get r',
    answers: [[200, rule]],
    requests: ['GET /rules/r'],
    stdout: `ok: got rule r\n${rulePrinted}`,
  },
  {
    wsk: 'rule get r trigger',
    answers: [[200, rule]],
    requests: ['GET /rules/r'],
    stdout: `ok: got rule r, displaying field trigger\n${printed(rule.trigger)}`,
  },
  {
    wsk: 'rule get r -s',
    answers: [[200, rule]],
    requests: ['GET /rules/r'],
    stdout: 'rule /guest/r\n   (status: active)',
  },
  { wsk: 'rule get r x', code: 1, stderr: "error: Invalid field filter 'x'." },
  {
    wsk: 'rule get r',
    answers: [notThere],
    requests: ['GET /rules/r'],
    code: 148,
    stderr: errorWithHint("Unable to get rule 'r': The requested resource does not exist. (code tid1)"),
  },
  { wsk: 'rule status r', answers: [[200, rule]], requests: ['GET /rules/r'], stdout: 'ok: rule r is active' },
  {
    wsk: 'rule status r',
    answers: [notThere],
    requests: ['GET /rules/r'],
    code: 148,
    stderr: errorWithHint("Unable to get status of rule 'r': The requested resource does not exist. (code tid1)"),
  },
  { wsk: 'rule enable r', answers: [[200, rule]], requests: [setTo('active')], stdout: 'ok: enabled rule r' },
  { wsk: 'rule disable r', answers: [[200, rule]], requests: [setTo('inactive')], stdout: 'ok: disabled rule r' },
  {
    wsk: 'rule enable r',
    answers: [notThere],
    requests: [setTo('active')],
    code: 148,
    stderr: "error: Unable to enable rule 'r': The requested resource does not exist. (code tid1)",
  },
  { wsk: 'rule delete r', answers: [[200, rule]], requests: ['DELETE /rules/r'], stdout: 'ok: deleted rule r' },
  {
    wsk: 'rule delete r --disable',
    answers: [
      [200, rule],
      [200, rule],
    ],
    requests: [setTo('inactive'), 'DELETE /rules/r'],
    stdout: 'ok: deleted rule r',
  },
  {
    wsk: 'rule delete r --disable',
    answers: [notThere],
    requests: [setTo('inactive')],
    code: 148,
    stderr: "error: Unable to disable rule 'r': The requested resource does not exist. (code tid1)",
  },
  ...['enable', 'disable', 'status', 'get', 'delete'].map((verb) => ({
    wsk: `rule ${verb}`,
    code: 1,
    stderr: nameRequired,
  })),
]);

describeCases('rule list', [
  {
    wsk: 'rule list',
    answers: [
      [200, [{ namespace: 'guest', name: 'r' }]],
      [200, rule],
    ],
    requests: ['GET /rules?limit=30&skip=0', 'GET /rules/r'],
    stdout: `rules\n${'/guest/r'.padEnd(70)} ${'private'.padEnd(20)} active`,
  },
  { wsk: 'rule list', answers: [[200, []]], requests: ['GET /rules?limit=30&skip=0'], stdout: 'rules' },
]);
