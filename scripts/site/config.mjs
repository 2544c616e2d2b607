// VitePress's configuration, for a folder as build.mjs lays it out.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { pageOf, sections, titleOf } from './pages.mjs';
import { referenceTitles } from './reference.mjs';

const base = '/docs/';
const linkOf = (page) => `/${page.replace(/\.md$/, '')}`;
const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The anchor that GitHub makes of a heading, which links in docs/ name. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replace(/ /g, '-');

/**
 * A page without inline scripts and styles, which the content security policy forbids: scripts become files of `folder`, and
 * the theme's style sheet has what the styles say.
 */
function withoutInline(html, folder) {
  return html
    .replace(/<script id="([\w-]+)">([^]*?)<\/script>/g, (_, name, code) => {
      const file = `${name}.${createHash('sha256').update(code).digest('hex').slice(0, 8)}.js`;
      writeFileSync(join(folder, file), code);
      return `<script src="${base}assets/${file}"></script>`;
    })
    .replace(/(<[a-z][^<>]*?) style="[^"<>]*"/g, '$1');
}

/** Columns of tables are aligned by classes. */
function alignByClass(markdown) {
  for (const name of ['th_open', 'td_open']) {
    markdown.renderer.rules[name] = (tokens, at, options, env, self) => {
      const token = tokens[at];
      const aligned = /text-align:(\w+)/.exec(token.attrGet('style') ?? '');
      if (aligned) token.attrs = [...token.attrs.filter(([key]) => key !== 'style'), ['class', `align-${aligned[1]}`]];
      return self.renderToken(tokens, at, options);
    };
  }
}

export default defineConfig({
  title: 'gpuwhisk',
  description: 'Functions on GPU servers, with the API of OpenWhisk',
  base,
  srcDir: 'pages',
  outDir: 'site',
  cacheDir: 'cache',
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  cleanUrls: true,
  // Otherwise a change between light and dark writes an inline style.
  appearance: { disableTransition: false },
  // Otherwise each page has the list of all pages in a script.
  metaChunk: true,
  markdown: {
    html: false,
    // Braces at the end of a heading are part of it.
    attrs: { disable: true },
    // Colours of VitePress's highlighter are inline styles. Code that is scrolled must be reached by keyboard.
    highlight: (code) => `<pre tabindex="0" v-pre><code>${escaped(code)}</code></pre>`,
    anchor: { slugify: anchorOf },
    config: alignByClass,
  },
  vite: { build: { assetsInlineLimit: 0, chunkSizeWarningLimit: 2000 }, logLevel: 'warn' },
  transformHtml: (html, _, { siteConfig }) => withoutInline(html, join(siteConfig.outDir, 'assets')),
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Start', link: linkOf('tutorials/start.md') },
      { text: 'Console', link: '/console/', target: '_self' },
    ],
    sidebar: [
      ...sections.map(({ title, files }) => ({
        text: title,
        items: files.map((file) => ({ text: titleOf(file), link: linkOf(pageOf(file)) })),
      })),
      {
        text: 'Reference',
        items: Object.entries(referenceTitles).map(([page, text]) => ({ text, link: linkOf(page) })),
      },
    ],
  },
});
