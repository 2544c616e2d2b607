import js from '@eslint/js';
import tseslint from 'typescript-eslint';

/** Which packages a package may import (design: dependencies point one way). */
const mayImport = {
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
];

/** The folders of gpu/src: each may import those before it. */
const gpuFolders = [
  'numeric',
  'predict',
  'tokens',
  'view',
  'place',
  'share',
  'profile',
  'order',
  'admit',
  'preempt',
  'scale',
  'geometry',
  'policies',
  'simulate',
];

function gpuBoundary(folder, at) {
  const own = boundary('gpu', mayImport.gpu);
  const [level, { patterns }] = own.rules['@typescript-eslint/no-restricted-imports'];
  const later = gpuFolders.slice(at + 1).map((other) => ({
    group: [`../${other}/*`, `../../${other}/*`],
    message: `gpu/src/${folder} must not import gpu/src/${other}.`,
  }));
  return {
    files: [`gpu/src/${folder}/**/*.ts`],
    ignores: ['**/*.test.ts'],
    rules: { '@typescript-eslint/no-restricted-imports': [level, { patterns: [...patterns, ...later] }] },
  };
}

function boundary(name, allowed) {
  const forbidden = packages.filter((other) => other !== name && !allowed.includes(other));
  const typesOnly = name === 'cli' || name === 'console';
  return {
    files: [`${name}/src/**/*.ts`],
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
            { group: ['../../*/src/*', '../../../*/src/*', '**/dist/**'], message: 'Import a package by its name.' },
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
  'common/src/config.ts',
  'common/src/store/lmdb-store.ts',
  'invoker/src/containers/docker/**',
  'invoker/src/containers/mscontainer/**',
  'invoker/src/containers/process/**',
  'invoker/src/gpu-agent/drivers/**',
  'invoker/src/gpu-agent/enforcers/**',
  'invoker/src/gpu-agent/host/**',
  'invoker/src/runtimes/**',
  'server/src/**',
  'standalone/src/**',
  '**/*.test.ts',
];

export default tseslint.config(
  { ignores: ['**/dist/**', '**/build/**', '**/node_modules/**', '.gpuwhisk/**', 'bench/results/**'] },
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
        setImmediate: 'readonly',
        clearTimeout: 'readonly',
        fetch: 'readonly',
        AbortSignal: 'readonly',
        performance: 'readonly',
      },
    },
    rules: { '@typescript-eslint/no-require-imports': 'off' },
  },
  ...Object.entries(mayImport).map(([name, allowed]) => boundary(name, allowed)),
  ...gpuFolders.map(gpuBoundary),
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
