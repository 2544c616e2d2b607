// npm start: brings the clone up to date, then becomes the server.
import { buildSiteBehind, ensureBuilt } from './build.mjs';
import programs from './program.cjs';

const { runProgram } = programs;

await ensureBuilt();
await buildSiteBehind();
runProgram('standalone');
