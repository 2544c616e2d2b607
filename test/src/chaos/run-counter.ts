// Counts the runs of functions: each run requests a path, which is appended to a file. Arguments: `ADDRESS PORT FILE`.
// Ends with its parent.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [address, port, file = ''] = process.argv.slice(2);
createServer((request, response) => {
  appendFileSync(file, `${request.url ?? ''}\n`);
  response.end('counted');
}).listen(Number(port), address, () => process.stdout.write('ready\n'));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
