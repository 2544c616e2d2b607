// Reference pages, generated from the programs: the API's document, the help of each command, the schema of the settings.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { root } from '../fresh.mjs';

const helpTimeoutMs = 60_000;

/** Titles of the reference pages by path in the site. */
export const referenceTitles = {
  'reference/wsk.md': 'wsk',
  'reference/commands.md': 'npm start, gpuwhisk, wskadmin',
  'reference/api.md': 'REST API',
  'reference/settings.md': 'Settings',
};

/** The reference pages' texts by path in the site. The TypeScript code must be compiled. */
export async function referencePages() {
  const [wsk, commands, api, settings] = await Promise.all([wskPage(), commandsPage(), apiPage(), settingsPage()]);
  return new Map([
    ['reference/wsk.md', wsk],
    ['reference/commands.md', commands],
    ['reference/api.md', api],
    ['reference/settings.md', settings],
  ]);
}

const built = (path) => import(pathToFileURL(join(root, path)).href);
const code = (text) => `\`\`\`text\n${text.trimEnd()}\n\`\`\`\n`;
const cell = (text) => String(text).replaceAll('|', '\\|').replace(/\s+/g, ' ');
const title = (page) => `# ${referenceTitles[page]}\n\n`;

async function wskPage() {
  const { commandTable } = await built('cli/dist/commands/table.js');
  const { rootHelp, groupHelp, commandHelp } = await built('cli/dist/command.js');
  const parts = [
    title('reference/wsk.md'),
    'Help of each command, as `wsk help COMMAND` prints it.\n\n',
    code(rootHelp(commandTable)),
  ];
  for (const entry of commandTable) {
    const loaded = await entry.load();
    const isGroup = Array.isArray(loaded);
    parts.push(
      `\n## ${entry.name}\n\n`,
      code(isGroup ? groupHelp(entry, loaded) : commandHelp(`wsk ${entry.name}`, loaded)),
    );
    for (const command of isGroup ? loaded : []) {
      const path = `${entry.name} ${command.name}`;
      parts.push(`\n### ${path}\n\n`, code(commandHelp(`wsk ${path}`, command)));
    }
  }
  return parts.join('');
}

const programs = [
  ['npm start', ['scripts/serve.cjs', '--help']],
  ['gpuwhisk', ['bin/gpuwhisk', '--help']],
  ...['migrate', 'backup', 'restore', 'operator-key', 'controller'].map((name) => [
    name === 'controller' ? 'gpuwhisk controller, invoker, databases' : `gpuwhisk ${name}`,
    ['bin/gpuwhisk', name, '--help'],
  ]),
  ['wskadmin', ['bin/wskadmin', '--help']],
];

async function commandsPage() {
  const helps = await Promise.all(
    programs.map(async ([name, args]) => {
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, timeout: helpTimeoutMs });
      return `\n## ${name}\n\n${code(stdout)}`;
    }),
  );
  return `${title('reference/commands.md')}Help of each program, as \`--help\` prints it.\n${helps.join('')}`;
}

async function apiPage() {
  const { createRoutes } = await built('controller/dist/api/routes.js');
  // Descriptions need no dependencies: only the routes' handlers do.
  const route = createRoutes({}).find(({ operationId }) => operationId === 'getOpenApi');
  const { value: document } = await route.handle();
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, ...operation })),
  );
  const tags = [...new Set(operations.flatMap(({ tags }) => tags))].sort();
  const parts = [
    title('reference/api.md'),
    `Paths are below \`${document.servers[0].url}\`. The server has the same as OpenAPI 3.1 at \`${document.servers[0].url}/openapi.json\`.\n`,
  ];
  for (const tag of tags) {
    parts.push(`\n## ${tag}\n`);
    for (const operation of operations.filter(({ tags }) => tags.includes(tag))) parts.push(operationText(operation));
  }
  parts.push('\n## Schemas\n');
  for (const [name, schema] of Object.entries(document.components.schemas)) parts.push(schemaText(name, schema));
  return parts.join('');
}

function operationText({ method, path, summary, parameters, requestBody, responses, security }) {
  const rows = parameters.map(
    ({ name, in: place, schema, description }) =>
      `| \`${name}\` | ${place} | ${schema.type} | ${cell(description)} |\n`,
  );
  const table = rows.length === 0 ? '' : `\n| parameter | in | type | |\n| --- | --- | --- | --- |\n${rows.join('')}`;
  const body = requestBody && `\nBody: ${typeText(requestBody.content['application/json'].schema)}.\n`;
  const answers = Object.entries(responses).map(([status, { description, content }]) => {
    const type = content && typeText(content['application/json'].schema);
    return `| ${status} | ${cell(description)} | ${type ?? ''} |\n`;
  });
  return `\n### ${method.toUpperCase()} ${path}\n\n${summary}.${security ? '' : ' Without a key.'}\n${table}${body ?? ''}
| status | | body |\n| --- | --- | --- |\n${answers.join('')}`;
}

function schemaText(name, schema) {
  const { description, properties = {}, required = [] } = schema;
  const rows = Object.entries(properties).map(
    ([key, property]) =>
      `| \`${key}\` | ${cell(typeText(property))}${required.includes(key) ? '' : ', optional'} | ${cell(property.description ?? '')} |\n`,
  );
  const table =
    rows.length === 0 ? `${typeText(schema)}\n` : `| field | type | |\n| --- | --- | --- |\n${rows.join('')}`;
  return `\n### ${name}\n\n${description ? `${description}\n\n` : ''}${table}`;
}

/** A JSON schema in words. */
function typeText(schema) {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').pop();
    return `[${name}](#${name.toLowerCase()})`;
  }
  const several = schema.oneOf ?? schema.anyOf ?? schema.allOf;
  if (several) return several.map(typeText).join(schema.allOf ? ' and ' : ' or ');
  if (schema.enum) return schema.enum.map((value) => `\`${JSON.stringify(value)}\``).join(', ');
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (schema.type === 'array') return `list of ${schema.items ? typeText(schema.items) : 'anything'}`;
  const type = schema.type ?? 'anything';
  return Array.isArray(type) ? type.join(' or ') : type;
}

async function settingsPage() {
  const { z } = await import('zod');
  const { configSchema } = await built('common/dist/config-schema.js');
  const { settingComments } = await import('./settings-comments.mjs');
  const comments = settingComments('configSchema');
  const rows = [];
  const visit = ({ properties = {} }, prefix) => {
    for (const [name, schema] of Object.entries(properties)) {
      const path = prefix + name;
      const inner = schema.type === 'object' && schema.properties !== undefined;
      const byDefault = 'default' in schema && !inner ? `\`${cell(JSON.stringify(schema.default))}\`` : '';
      const type = inner ? 'object' : cell(typeText(schema));
      rows.push(`| \`${path}\` | ${cell(comments.get(path) ?? '')} | ${type} | ${byDefault} |\n`);
      if (inner) visit(schema, `${path}.`);
    }
  };
  visit(z.toJSONSchema(configSchema, { io: 'input', unrepresentable: 'any' }), '');
  return `${title('reference/settings.md')}Settings stand in a file (\`--config\`), in the environment, or after \`--set\`
([operations](../operations.md#running)).\n
| setting | meaning | type | default |\n| --- | --- | --- | --- |\n${rows.join('')}`;
}
