// npm run bench -- NAME [flags]
import './node-version.cjs';
import { ensureBuilt } from './build.mjs';

await ensureBuilt();
await import('../bench/dist/main.js');
