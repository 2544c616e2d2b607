import { join } from 'node:path';
import { defineConfig } from 'vite';

const folder = import.meta.dirname;

export default defineConfig({
  root: folder,
  base: './',
  build: {
    outDir: join(folder, '..', 'build', 'console'),
    emptyOutDir: true,
    target: 'es2022',
    // Nothing inline: the content security policy allows only files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The editor, which is loaded when code is shown first; test/src/console bounds the compressed whole.
    chunkSizeWarningLimit: 700,
  },
  logLevel: 'warn',
});
