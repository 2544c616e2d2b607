// npm start: brings the clone up to date as far as a server needs, then becomes the server.
import { buildSiteBehind, ensureServerBuilt } from './build.mjs';
import programs from './program.cjs';

const { rest, isNew } = await ensureServerBuilt();
if (isNew) console.log('Starting ...');
void rest.then(buildSiteBehind);
programs.runProgram('standalone');
