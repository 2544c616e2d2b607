import { expect, test } from '@jest/globals';
import { vanityUrl } from './web-request.js';

test.each<[string | undefined, string, string | undefined]>([
  ['guest.example.org', '/', '/api/v1/web/guest/public/index.html'],
  ['guest.example.org', '/?a=b', '/api/v1/web/guest/public/index.html?a=b'],
  ['guest.example.org:8080', '/default/hello.json/x?a=/', '/api/v1/web/guest/default/hello.json/x?a=/'],
  ['Guest.EXAMPLE.org', '/default/hello', '/api/v1/web/guest/default/hello'],
  ['my-team-2.example.org', '/default/hello', '/api/v1/web/my-team-2/default/hello'],
  ['guest.example.org', '/api/v1/namespaces', '/api/v1/web/guest/api/v1/namespaces'],
  ['example.org', '/', undefined],
  ['.example.org', '/', undefined],
  ['a.b.example.org', '/', undefined],
  ['under_score.example.org', '/', undefined],
  ['guestexample.org', '/', undefined],
  ['guest.example.org.evil', '/', undefined],
  ['other.org', '/', undefined],
  [undefined, '/', undefined],
])('%s %s: %s', (host, url, expected) => {
  expect(vanityUrl(host, url, 'example.org')).toBe(expected);
});
