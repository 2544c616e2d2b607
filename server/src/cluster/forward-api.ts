import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import { fromSandbox } from '@gpuwhisk/controller/http/route';

/** An answer of the API takes a blocking invocation and some. */
const timeoutMs = 75_000;

/** Passes on what functions in sandboxes ask of the platform's API, which is elsewhere and is told that functions ask. */
export function forwardApi(apiUrl: string): HttpHandler {
  const { protocol, hostname, port, host } = new URL(apiUrl);
  const send = protocol === 'https:' ? httpsRequest : httpRequest;
  return (request, response) => {
    const { method, url: path = '/', headers } = request;
    // All requests go to the API: a path that is an absolute URL is refused, never taken for an address.
    if (!path.startsWith('/')) {
      response.writeHead(400).end();
      return;
    }
    // A proxy in between drops the headers that `connection` names: a function could have it drop ours.
    const passed = { ...headers, host, [fromSandbox]: 'true' };
    delete passed.connection;
    const onward = send({ hostname, port, path, method, headers: passed });
    onward.setTimeout(timeoutMs, () => onward.destroy(new Error('no answer')));
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => undefined);
    });
    onward.on('error', () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  };
}
