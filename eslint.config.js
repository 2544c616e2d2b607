import { posix } from 'node:path';
import js from '@eslint/js';
import tseslint from 'typescript-eslint';

const packages = [
  'common',
  'gpu',
  'engines',
  'native',
  'controller',
  'invoker',
  'server',
  'standalone',
  'cli',
  'console',
  'bench',
  'test',
  'research',
];
/** Nothing of the product imports research; benches and tests may import all else. */
const withoutResearch = packages.filter((name) => name !== 'research');

/** Which packages a package may import (design: dependencies point one way). */
const mayImport = {
  bench: withoutResearch,
  test: withoutResearch,
  common: [],
  gpu: ['common'],
  engines: ['common'],
  controller: ['common', 'gpu'],
  invoker: ['common', 'gpu', 'native'],
  server: ['common', 'gpu', 'engines', 'controller', 'invoker'],
  standalone: ['common', 'engines', 'controller', 'invoker', 'server'],
  cli: [],
  console: [],
};
/** Folders that may import less than their package. */
const folderMayImport = { 'research/baselines': ['common', 'gpu'] };
/** Scheduling algorithms, a folder each; none may import another one. */
const algorithms = ['auto', 'dilu', 'exclusive', 'faashare', 'least-loaded', 'protean', 'smore'];

/** The folders of a package's src: each may import those before it. A nested folder may have an entry of its own. */
const folderOrder = {
  common: ['system', 'store', 'entities', 'bus', 'state', 'jobs', 'activations'],
  gpu: [
    'numeric',
    'forecast',
    'predict',
    'tokens',
    'ledger',
    'view',
    'share',
    'stages/place',
    'stages/share',
    'stages/profile',
    'stages/order',
    'stages/admit',
    'stages/preempt',
    'stages/scale',
    'stages/geometry',
    'stages/procure',
    'stages',
    ...algorithms.map((name) => `algorithms/${name}`),
    'policies',
    'simulate',
  ],
  engines: ['redis', 'kafka', 'couchdb', 'bull'],
  controller: [
    'schemas',
    'invoke',
    'http',
    'entities',
    'authentication',
    'live',
    'packages',
    'entitlement',
    'actions',
    'triggers',
    'web',
    'gateway',
    'compose',
    'admin',
    'balance',
    'cluster',
    'gpu/state',
    'gpu/learning',
    'gpu/handover',
    'gpu/procure',
    'gpu/cost',
    'gpu/scheduler',
    'gpu/search',
    'gpu/training',
    'dispatch',
    'sdk',
    'api',
  ],
  invoker: [
    'host',
    'containers',
    'containers/protocol',
    'containers/sandbox',
    'runtimes',
    'containers/process',
    'containers/mscontainer',
    'containers/docker',
    'pool',
    'gpu-agent/drivers',
    'gpu-agent/host',
    'gpu-agent/enforcers/tokens',
    'gpu-agent/enforcers',
    'gpu-agent',
    'activation',
  ],
  server: ['process', 'engines', 'node', 'cluster'],
  cli: ['json', 'args', 'client', 'migrate', 'backup', 'wskadmin', 'project', 'commands', 'dev'],
  bench: [
    'data',
    'load',
    'cluster',
    'gpu',
    'gpu-day/stages',
    'gpu-day',
    'replay',
    'documents',
    'live',
    'scheduler',
    'console',
    'benches',
  ],
  research: ['baselines', 'data', 'world', 'predictor', 'replay', 'documents', 'experiments'],
};

/** Forbids the files of a folder, and those of its folders without an entry, what follows in its package's order; algorithms each other, too. */
function folderBoundary(name, folder, at) {
  const folders = folderOrder[name];
  const own = boundary(name, folderMayImport[`${name}/${folder}`] ?? mayImport[name] ?? packages);
  const [level, { patterns }] = own.rules['@typescript-eslint/no-restricted-imports'];
  const nestedIn = (parent) => folders.filter((other) => other.startsWith(`${parent}/`));
  const rulesFrom = (from) => {
    const isBeside = (other) => other !== folder && [other, folder].every((one) => one.startsWith('algorithms/'));
    const later = folders
      .filter((other, index) => index > at || isBeside(other))
      .map((other) => {
        const path = posix.relative(from, other);
        const files = `${path.startsWith('.') ? path : `./${path}`}/*`;
        return {
          group: nestedIn(other).length > 0 ? [`${files}.js`] : [`${files}.js`, `${files}/*.js`],
          message: `${name}/src/${folder} must not import ${name}/src/${other}.`,
        };
      });
    return { '@typescript-eslint/no-restricted-imports': [level, { patterns: [...patterns, ...later] }] };
  };
  const ignores = ['**/*.test.ts', '**/testing/**', ...nestedIn(folder).map((other) => `${name}/src/${other}/**`)];
  return [
    { files: [`${name}/src/${folder}/*.ts`], ignores, rules: rulesFrom(folder) },
    { files: [`${name}/src/${folder}/*/*.ts`], ignores, rules: rulesFrom(`${folder}/nested`) },
  ];
}

/** What a package may import; `forTests`: its tests and the helpers in its folder `testing`, which only tests may import. */
function boundary(name, allowed, forTests = false) {
  const forbidden = packages.filter((other) => other !== name && !allowed.includes(other));
  const typesOnly = name === 'cli' || name === 'console';
  return {
    files: forTests ? [`${name}/src/**/*.test.ts`, `${name}/src/testing/**`] : [`${name}/src/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            ...forbidden
              .filter((other) => !(typesOnly && other === 'common'))
              .map((other) => ({
                group: [`@gpuwhisk/${other}`, `@gpuwhisk/${other}/*`],
                message: `${name} must not import ${other}.`,
              })),
            ...(typesOnly
              ? [{ group: ['@gpuwhisk/common/*'], allowTypeImports: true, message: `${name} imports types only.` }]
              : []),
            ...(forTests || ['bench', 'test', 'research'].includes(name)
              ? []
              : [{ group: ['**/testing/*'], message: 'Only tests may import test helpers.' }]),
            {
              group: ['../../*/src/*', '../../../*/src/*', '../**/dist/**', '@gpuwhisk/*/dist/**'],
              message: 'Import a package by its name.',
            },
          ],
        },
      ],
    },
  };
}

const seam = (what) => `Use ${what} (common/src/system), which is passed in, so that simulation can replace it.`;

/** Files that are themselves an edge to the operating system: implementations behind an SPI, entry points, tests. */
const edges = [
  'common/src/system/**',
  'common/src/testing/until.ts',
  'common/src/config.ts',
  'common/src/store/lmdb-store.ts',
  'invoker/src/containers/program-files.ts',
  'invoker/src/containers/docker/**',
  'invoker/src/containers/mscontainer/**',
  'invoker/src/containers/process/**',
  'invoker/src/containers/protocol/**',
  'invoker/src/containers/sandbox/**',
  'invoker/src/gpu-agent/drivers/**',
  'invoker/src/gpu-agent/enforcers/**',
  'invoker/src/gpu-agent/host/**',
  'invoker/src/host/**',
  'invoker/src/runtimes/**',
  'server/src/**',
  'standalone/src/**',
  '**/*.test.ts',
];

/** Calls of node:fs that walk a folder by paths: where functions can write, a symbolic link leads them anywhere. */
const treeWalk = {
  selector:
    'CallExpression:matches([callee.name=/^(rm|rmdir|cp|readdir|opendir|rmSync|rmdirSync|cpSync|readdirSync)$/], [callee.property.name=/^(rm|rmdir|cp|readdir|opendir|rmSync|rmdirSync|cpSync|readdirSync)$/]) > ObjectExpression > Property[key.name="recursive"]',
  message: 'Use invoker/src/host/trees.ts, which walks by descriptors.',
};

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/build/**',
      '**/node_modules/**',
      '.gpuwhisk/**',
      '{bench,research}/results/**',
      'cli/schemas/**',
    ],
  },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  {
    files: ['**/*.ts'],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      'no-empty': ['error', { allowEmptyCatch: false }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        Buffer: 'readonly',
        URL: 'readonly',
        require: 'readonly',
        module: 'readonly',
        __dirname: 'readonly',
        setTimeout: 'readonly',
        setInterval: 'readonly',
        setImmediate: 'readonly',
        clearTimeout: 'readonly',
        clearInterval: 'readonly',
        fetch: 'readonly',
        AbortSignal: 'readonly',
        performance: 'readonly',
      },
    },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  ...Object.entries(mayImport).map(([name, allowed]) => boundary(name, allowed)),
  ...Object.entries(mayImport).map(([name, allowed]) => boundary(name, allowed, true)),
  ...Object.entries(folderOrder).flatMap(([name, folders]) =>
    folders.flatMap((folder, at) => folderBoundary(name, folder, at)),
  ),
  {
    files: ['{common,gpu,engines,controller,invoker,server,standalone,cli,bench,research}/src/**/*.ts'],
    ignores: ['**/*.test.ts', '**/testing/**'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'error' },
  },
  {
    files: ['invoker/src/**/*.ts'],
    ignores: ['invoker/src/host/trees.ts', '**/*.test.ts'],
    rules: { 'no-restricted-syntax': ['error', treeWalk] },
  },
  {
    files: ['{common,gpu,controller,invoker}/src/**/*.ts'],
    ignores: edges,
    rules: {
      'no-restricted-globals': [
        'error',
        ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval'].map((name) => ({
          name,
          message: seam('Clock'),
        })),
        { name: 'performance', message: seam('Clock') },
        { name: 'fetch', message: seam('Network') },
      ],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: seam('Clock') },
        { object: 'Math', property: 'random', message: seam('Random') },
        { object: 'process', property: 'hrtime', message: seam('Clock') },
      ],
      'no-restricted-syntax': [
        'error',
        { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: seam('Clock') },
        treeWalk,
      ],
      'no-restricted-imports': [
        'error',
        {
          paths: [
            'fs',
            'fs/promises',
            'net',
            'http',
            'https',
            'dgram',
            'child_process',
            'timers',
            'timers/promises',
            'perf_hooks',
          ]
            .flatMap((name) => [name, `node:${name}`])
            .map((name) => ({ name, message: seam('Clock, Disk or Network'), allowTypeImports: true })),
        },
      ],
    },
  },
);
