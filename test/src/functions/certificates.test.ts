// Certificates that functions trust by setting functionCertificates.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openFunctionCertificates } from '@gpuwhisk/server/node/function-certificates';
import { certificate, privateKey } from '../cli/self-signed.js';
import { kinds } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-certificates-'));
const file = join(folder, 'proxy.pem');
writeFileSync(file, `The proxy's:\n${certificate}`);
let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform({ flags: ['--set', `functionCertificates=${file}`, '--stem-cells', 'false'] });
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

const key = JSON.stringify(privateKey);
const pem = JSON.stringify(certificate);
/** Connects to a server of its own, whose certificate only the setting makes a trusted one; tries to change the file. */
const sources: Record<string, string> = {
  'nodejs:default': `const https = require('https'), fs = require('fs');
function main() {
  return new Promise((resolve, reject) => {
    const server = https.createServer({ key: ${key}, cert: ${pem} }, (_, response) => response.end('hello'));
    server.listen(0, () => {
      const { SSL_CERT_FILE, NODE_EXTRA_CA_CERTS } = process.env;
      let changed = true;
      try { fs.appendFileSync(NODE_EXTRA_CA_CERTS, 'x'); } catch { changed = false; }
      https.get({ host: '127.0.0.1', servername: 'localhost', port: server.address().port }, (response) => {
        response.on('data', (text) => resolve({ said: String(text), changed, file: SSL_CERT_FILE }));
      }).on('error', reject);
    });
  });
}`,
  'python:default': `import os, socket, ssl, tempfile, threading
def main(args):
  pair = tempfile.NamedTemporaryFile("w", delete=False)
  pair.write(${key} + ${pem})
  pair.close()
  serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  serving.load_cert_chain(pair.name)
  server = socket.create_server(("127.0.0.1", 0))
  def serve():
    with serving.wrap_socket(server.accept()[0], server_side=True) as peer:
      peer.sendall(b"hello")
  threading.Thread(target=serve).start()
  changed = True
  try:
    open(os.environ["SSL_CERT_FILE"], "a").write("x")
  except OSError:
    changed = False
  with socket.create_connection(server.getsockname()) as plain:
    with ssl.create_default_context().wrap_socket(plain, server_hostname="localhost") as secure:
      said = secure.recv(5).decode()
  return {"said": said, "changed": changed, "file": os.environ["SSL_CERT_FILE"]}`,
};

describe.each(kinds.map(String))('%s:', (kind) => {
  test('a function trusts them, and cannot change them', async () => {
    await platform.api.putAction('trusting', sources[kind] ?? '', { kind });
    const { body } = await platform.api.invoke('trusting', {});
    expect(body.response).toMatchObject({
      success: true,
      result: { said: 'hello', changed: false, file: expect.stringMatching(/certificates\/all\.pem$/) },
    });
  });

  test('a function that names others has those', async () => {
    const parameters = [{ key: 'SSL_CERT_FILE', value: '/mine.pem', init: true }];
    const source = kind.startsWith('nodejs')
      ? 'const main = () => ({ file: process.env.SSL_CERT_FILE, git: process.env.GIT_SSL_CAINFO })'
      : 'import os\ndef main(args):\n  return {"file": os.environ["SSL_CERT_FILE"], "git": os.environ["GIT_SSL_CAINFO"]}';
    const body = { exec: { kind, code: source }, parameters };
    expect((await platform.api.request('PUT', '_/actions/own?overwrite=true', body)).status).toBe(200);
    const { body: record } = await platform.api.invoke('own', {});
    expect(record.response.result).toEqual({ file: '/mine.pem', git: expect.stringMatching(/all\.pem$/) });
  });
});

test.each([
  ['is not there', undefined, /which cannot be read: ENOENT/],
  ['holds no certificate', 'hello', /which holds no certificate/],
  ['holds a broken one', certificate.replace(/MII.{20}/, 'MII'), /which holds a malformed certificate, number 1/],
])('a file that %s is told in one line', async (_, text, message) => {
  const bad = join(folder, 'bad.pem');
  if (text !== undefined) writeFileSync(bad, text);
  const opening = openFunctionCertificates(bad, folder);
  await expect(opening).rejects.toMatchObject({ name: 'ConfigError', message: expect.stringMatching(message) });
  rmSync(bad, { force: true });
});
