// The bare server that the platform is measured against: Node's own HTTP server, which parses a JSON body and
// answers the same JSON. Usage: node bench/reference.mjs [PORT]
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    let value;
    try {
      value = JSON.parse(Buffer.concat(chunks).toString());
    } catch {
      response.writeHead(400).end();
      return;
    }
    const body = JSON.stringify(value);
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
    response.end(body);
  });
});

server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
