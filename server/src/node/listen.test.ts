import { expect, test } from '@jest/globals';
import { loadConfig } from '@gpuwhisk/common/config';
import { listen } from './listen.js';

const handlers = Object.fromEntries(
  ['handle', 'handleGateway', 'handleConsole'].map((name) => [
    name,
    (_: unknown, response: { end: (text: string) => void }) => response.end(name),
  ]),
) as unknown as Parameters<typeof listen>[1];
const configOf = (base: object) => loadConfig({ base: { port: 0, ...base } });

test('API, gateway and console listen on ports of their own, and close together', async () => {
  const servers = await listen(configOf({}), handlers);
  const urls = [servers.url, servers.gatewayUrl, servers.console?.url];
  const answers = await Promise.all(urls.map(async (url) => (await fetch(String(url))).text()));
  expect(answers).toEqual(['handle', 'handleGateway', 'handleConsole']);
  await servers.close(0);
  for (const url of urls) await expect(fetch(String(url))).rejects.toThrow();
});

test('gateway and console can be off, and the console can have another address outside', async () => {
  const off = await listen(configOf({ gatewayPort: false, consolePort: false }), handlers);
  expect([off.gatewayUrl, off.console]).toEqual([undefined, undefined]);
  await off.close(0);
  const named = await listen(configOf({ consoleUrl: 'https://console.test/' }), handlers);
  expect(named.console).toEqual({ url: 'https://console.test', isConfigured: true });
  await named.close(0);
});

test('a console is refused that would share the origin of web pages, or is no origin', async () => {
  const consoleUrl = 'https://whisk.test:443';
  for (const other of [{ apiHost: 'https://whisk.test' }, { gatewayUrl: 'https://WHISK.test/gateway' }])
    await expect(listen(configOf({ consoleUrl, ...other }), handlers)).rejects.toThrow(
      /^consoleUrl is https:\/\/whisk\.test, as (apiHost|gatewayUrl): pages of web actions would share/,
    );
  for (const bad of ['https://whisk.test/console', 'ftp://whisk.test', 'https://a@whisk.test', 'whisk.test'])
    expect(() => configOf({ consoleUrl: bad })).toThrow(/consoleUrl/);
});
