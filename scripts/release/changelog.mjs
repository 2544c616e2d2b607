// What CHANGELOG.md says of a release.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../fresh.mjs';

/**
 * The changes of a version, as lines of Markdown without the heading: its section, else that of changes without a version yet.
 * Throws an Error if there is neither.
 */
export function changesOf(version) {
  const sections = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split(/^## /m).slice(1);
  const section = [version, 'Unreleased']
    .map((name) => sections.find((text) => text.split(/\s/, 1)[0] === name))
    .find(Boolean);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section '## ${version}', and none '## Unreleased'.`);
  return section.slice(section.indexOf('\n')).trim();
}
