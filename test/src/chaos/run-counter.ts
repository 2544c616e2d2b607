// Counts the runs of functions: each asks it for a path, which it appends to a file. `ADDRESS PORT FILE`; ends with its parent.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [address, port, file = ''] = process.argv.slice(2);
createServer((request, response) => {
  appendFileSync(file, `${request.url ?? ''}\n`);
  response.end('counted');
}).listen(Number(port), address, () => process.stdout.write('ready\n'));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
