// Pages of the documentation site, and their texts: Markdown of this repository whose links lead within the site.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join, posix } from 'node:path';
import { root } from '../fresh.mjs';

/** Sections of the site with the files of their pages, in the order of the menu. Every file in docs/ is in one. */
export const sections = [
  {
    title: 'Tutorials',
    files: [
      'docs/tutorials/start.md',
      'docs/tutorials/first-function.md',
      'docs/tutorials/gpu-inference.md',
      'docs/tutorials/training.md',
      'docs/tutorials/migration.md',
      'docs/tutorials/cluster.md',
    ],
  },
  {
    title: 'How-to',
    files: ['hello', 'feed', 'gpu', 'text-recognition', 'zip-with-dependencies'].map(
      (name) => `examples/${name}/README.md`,
    ),
  },
  {
    title: 'Users',
    files: ['wsk', 'dev', 'gpu', 'workloads', 'api-gateway', 'conformance', 'glossary'].map(
      (name) => `docs/${name}.md`,
    ),
  },
  {
    title: 'Operators',
    files: [
      ...[
        'operations',
        'install',
        'deployment',
        'migration',
        'console',
        'metrics',
        'runbook',
        'failure-modes',
        'security',
      ].map((name) => `docs/${name}.md`),
      'GUARANTEES.md',
    ],
  },
  {
    title: 'Policies',
    files: [
      ...[
        'policies',
        'policy-modules',
        'faashare',
        'faashare-operation',
        'smore',
        'smore-operation',
        'dilu',
        'protean',
      ],
      ...['baselines', 'baselines-operation'],
    ].map((name) => `docs/${name}.md`),
  },
  {
    title: 'Inside',
    files: [
      'README.md',
      'CONTRIBUTING.md',
      ...['architecture', 'mscontainer', 'runtime-protocol', 'libraries'].map((name) => `docs/${name}.md`),
      'gpu/README.md',
      'native/README.md',
    ],
  },
  {
    title: 'Measurements',
    files: [
      'gpu-day',
      ...[
        'benchmarks',
        'research',
        'world',
        'verdicts',
        'faashare-measurements',
        'smore-measurements',
        'dilu-measurements',
        'protean-measurements',
      ],
      'baselines-measurements',
    ].map((name) => `docs/${name}.md`),
  },
];

/** The file of the site's first page. */
export const home = 'docs/README.md';
const pictures = new Set(['.svg', '.png']);
const fence = /^```[^]*?^```$/gm;

/** The path of a file's page in the site. */
export function pageOf(file) {
  if (file === home) return 'index.md';
  const example = /^examples\/(.*)\/README\.md$/.exec(file);
  if (example) return `how-to/${example[1]}.md`;
  if (file === 'README.md') return 'project.md';
  if (file === 'gpu/README.md') return 'scheduling.md';
  if (file === 'native/README.md') return 'native.md';
  return file.replace(/^docs\//, '').toLowerCase();
}

/** The first heading of a file, as plain text. */
export function titleOf(file) {
  const heading = /^# (.*)$/m.exec(readFileSync(join(root, file), 'utf8').replace(fence, ''));
  if (heading === null) throw new Error(`${file} has no heading.`);
  return heading[1].replaceAll('`', '');
}

/**
 * The site's files by path: pages as text, pictures as bytes. Throws if a file of docs/ is in no section, or a link leads
 * nowhere.
 */
export function readPages() {
  const files = [home, ...sections.flatMap((section) => section.files)];
  const forgotten = readdirSync(join(root, 'docs'), { recursive: true })
    .map((name) => `docs/${name}`)
    .filter((file) => file.endsWith('.md') && !file.includes('/.') && !files.includes(file));
  if (forgotten.length > 0) throw new Error(`scripts/site/pages.mjs lists no section for ${forgotten.join(', ')}`);
  const site = new Map([['public/icon.svg', readFileSync(join(root, 'console', 'src', 'icon.svg'))]]);
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8');
    // Code stays as it is: only text between fenced blocks has links and comments.
    const blocks = text.match(fence) ?? [];
    const prose = text.split(fence).map((part) => rewritten(part, file, files, site));
    site.set(pageOf(file), prose.map((part, at) => part + (blocks[at] ?? '')).join(''));
  }
  return site;
}

/** Prose of a file as the site has it. Adds its pictures to `site`. */
function rewritten(prose, file, files, site) {
  return prose.replace(/<!--[^]*?-->/g, '').replace(/(!?)\[([^\]]*)\]\(([^)\s]+)\)/g, (whole, mark, text, target) => {
    if (/^([a-z]+:|#)/.test(target)) return whole;
    const [path, anchor] = target.split('#');
    const named = posix.normalize(posix.join(dirname(file), path));
    if (files.includes(named)) {
      const link = posix.relative(dirname(pageOf(file)), pageOf(named));
      return `${mark}[${text}](${link.startsWith('.') ? link : `./${link}`}${anchor === undefined ? '' : `#${anchor}`})`;
    }
    if (!existsSync(join(root, named))) throw new Error(`${file}: ${target} does not exist.`);
    if (mark === '!' && pictures.has(extname(named))) {
      const picture = `pictures/${posix.basename(named)}`;
      site.set(`public/${picture}`, readFileSync(join(root, named)));
      return `![${text}](/${picture})`;
    }
    // Other files of the repository are named; the site does not have them.
    return text;
  });
}
