import type { FlagSpec } from '../args/flags.js';

/** Flags of all commands of `wsk project`. */
export const projectFlags: FlagSpec[] = [
  { name: 'config', type: 'string', help: 'config file (default is $HOME/.wskprops)', ofGroup: true },
  { name: 'deployment', type: 'string', help: 'path to deployment file', ofGroup: true },
  { name: 'manifest', type: 'string', help: 'path to manifest file', ofGroup: true },
  { name: 'namespace', short: 'n', type: 'string', help: 'namespace', ofGroup: true },
  { name: 'param', type: 'pair', help: 'parameter values in `KEY VALUE` format', ofGroup: true },
  { name: 'param-file', type: 'string', help: '`FILE` containing parameter values in JSON format', ofGroup: true },
  { name: 'preview', type: 'bool', help: 'show deployment/undeployment plan', ofGroup: true },
  { name: 'project', type: 'string', default: '.', help: 'path to serverless project', ofGroup: true },
  { name: 'projectname', type: 'string', help: 'project name', ofGroup: true },
  { name: 'strict', type: 'bool', help: 'allow user defined runtime version', ofGroup: true },
];
