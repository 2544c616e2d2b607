// npm start: brings the clone up to date, then becomes the server.
import { ensureBuilt } from './build.mjs';

await ensureBuilt();
await import('../standalone/dist/main.js');
