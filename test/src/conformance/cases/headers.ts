import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { echo } from '../functions.js';

const allowed = {
  'access-control-allow-origin': '*',
  'access-control-allow-headers': 'Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent',
};

/** Requests without credentials: names of OpenWhisk's cases, with paths below `/api/v1` that need not exist. */
const preflights: [stands: string, path: string][] = [
  ['respond to OPTIONS with all headers', ''],
  ['respond to OPTIONS for listing actions', '/namespaces/barfoo/actions'],
  ['respond to OPTIONS for actions path', '/namespaces/barfoo/actions/foobar'],
  ['respond to OPTIONS for listing activations', '/namespaces/barfoo/activations'],
  ['respond to OPTIONS for activations get', '/namespaces/barfoo/activations/foobar'],
  ['respond to OPTIONS for activations logs', '/namespaces/barfoo/activations/foobar/logs'],
  ['respond to OPTIONS for activations results', '/namespaces/barfoo/activations/foobar/result'],
  ['respond to OPTIONS for listing namespaces', '/namespaces'],
  ['respond to OPTIONS for listing packages', '/namespaces/barfoo/packages'],
  ['respond to OPTIONS for packages path', '/namespaces/barfoo/packages/foobar'],
  ['respond to OPTIONS for listing rules', '/namespaces/barfoo/rules'],
  ['respond to OPTIONS for rules path', '/namespaces/barfoo/rules/foobar'],
  ['respond to OPTIONS for listing triggers', '/namespaces/barfoo/triggers'],
  ['respond to OPTIONS for triggers path', '/namespaces/barfoo/triggers/foobar'],
];

const lists: [stands: string, collection: string][] = [
  ['respond to GET for listing activations with Headers', 'activations'],
  ['respond to GET for listing packages with headers', 'packages'],
  ['respond to GET for listing rules with headers', 'rules'],
  ['respond to GET for listing triggers with headers', 'triggers'],
];

const rows: Row[] = [
  ...preflights.map(([stands, path]): Row => ({
    fact: `OPTIONS ${path === '' ? 'of the API' : path}`,
    stands: `HeadersTests: ${stands}`,
    run: async ({ user }) => {
      const { status, headers } = await user.send('OPTIONS', `/api/v1${path}`, { authenticated: false });
      expect({ status, headers }).toMatchObject({ status: 200, headers: allowed });
    },
  })),
  ...lists.map(([stands, collection]): Row => ({
    fact: `a list of ${collection}`,
    stands: `HeadersTests: ${stands}`,
    run: async ({ user }) => {
      const { status, headers } = await user.api('GET', `_/${collection}`);
      expect({ status, headers }).toMatchObject({ status: 200, headers: allowed });
    },
  })),
  {
    fact: 'an invocation of an action in a package',
    stands: 'HeadersTests: respond to POST action with headers',
    run: async (t) => {
      const action = await t.action(echo, {}, `${await t.package({ publish: true })}/helloWorld`);
      const { status, headers } = await t.post(`actions/${action}`);
      expect({ status, headers }).toMatchObject({ status: 202, headers: allowed });
    },
  },
];

/** CORS headers of every route. */
export const headerCases = table('CORS headers', 'common/scala/.../http/CorsSettings.scala', rows);
