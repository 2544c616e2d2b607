import { projectFlags, type CommandEntry } from '../command.js';

/** Every word that may follow `wsk`, in the order of the help text. A new group is one file and one line here. */
export const commandTable: CommandEntry[] = [
  {
    name: 'action',
    summary: 'work with actions',
    load: async () => (await import('./action/group.js')).actionCommands,
  },
  {
    name: 'activation',
    summary: 'work with activations',
    load: async () => (await import('./activation/group.js')).activationCommands,
  },
  {
    name: 'api',
    summary: 'work with APIs',
    load: async () => (await import('./api/group.js')).apiCommands,
  },
  {
    name: 'gpu',
    summary: 'look at GPUs and what is on them',
    load: async () => (await import('./gpu/group.js')).gpuCommands,
  },
  {
    name: 'list',
    summary: 'list entities in the current namespace',
    load: async () => (await import('./namespace.js')).listCommand,
  },
  {
    name: 'namespace',
    summary: 'work with namespaces',
    load: async () => (await import('./namespace.js')).namespaceCommands,
  },
  {
    name: 'package',
    summary: 'work with packages',
    load: async () => (await import('./package.js')).packageCommands,
  },
  {
    name: 'project',
    summary: 'The OpenWhisk Project Management Tool',
    flags: projectFlags,
    load: async () => (await import('./project.js')).projectCommands,
  },
  {
    name: 'property',
    summary: 'work with whisk properties',
    load: async () => (await import('./property.js')).propertyCommands,
  },
  {
    name: 'rule',
    summary: 'work with rules',
    load: async () => (await import('./rule.js')).ruleCommands,
  },
  {
    name: 'sdk',
    summary: 'work with the sdk',
    load: async () => (await import('./sdk.js')).sdkCommands,
  },
  {
    name: 'trigger',
    summary: 'work with triggers',
    load: async () => (await import('./trigger.js')).triggerCommands,
  },
];
