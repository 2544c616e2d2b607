// npm start: brings the clone up to date, then becomes the server.
import { ensureBuilt } from './build.mjs';
import programs from './program.cjs';

const { runProgram } = programs;

await ensureBuilt();
runProgram('standalone');
