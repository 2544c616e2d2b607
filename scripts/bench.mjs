// npm run bench -- NAME [flags]
import { ensureBuilt } from './build.mjs';

await ensureBuilt();
await import('../bench/dist/main.js');
