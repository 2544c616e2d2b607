// npm run research -- NAME [flags]
import { ensureBuilt } from './build.mjs';

await ensureBuilt({ research: true });
await import('../research/dist/main.js');
