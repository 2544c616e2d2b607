import { expect } from '@jest/globals';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';

const anonymous = { authenticated: false } as const;
const controller = 'core/controller/.../core/controller/Controller.scala';

const rows: Row[] = [
  {
    fact: 'GET / tells limits and runtimes',
    stands: 'ControllerApiTests: ensure controller returns info',
    run: async ({ user }) => {
      const { status, body } = await user.send<Record<'limits' | 'runtimes' | 'support', object>>(
        'GET',
        '/',
        anonymous,
      );
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { description: 'OpenWhisk', api_paths: ['/api/v1'], support: { github: expect.any(String) } },
      });
      const names = ['duration', 'memory', 'logs'].flatMap((what) => [`min_action_${what}`, `max_action_${what}`]);
      const rates = ['actions_per_minute', 'triggers_per_minute', 'concurrent_actions', 'sequence_length'];
      const all = [...names, ...names.map((one) => `default_${one}`), ...rates];
      expect(body.limits).toEqual(Object.fromEntries(all.map((name) => [name, expect.any(Number)])));
      expect(Object.keys(body).sort()).toEqual(['api_paths', 'description', 'limits', 'runtimes', 'support']);
      expect(body.support).toEqual({
        github: 'https://github.com/apache/openwhisk/issues',
        slack: 'http://slack.openwhisk.org',
      });
      expect(body.runtimes).toMatchObject({
        nodejs: expect.arrayContaining([
          {
            kind: expect.stringMatching(/^nodejs:\d+$/),
            image: expect.any(String),
            deprecated: false,
            default: true,
            attached: expect.any(Boolean),
            requireMain: false,
          },
        ]),
      });
    },
  },
  {
    fact: 'GET /ping is pong',
    source: 'common/scala/.../http/BasicRasService.scala',
    run: async ({ user }) => expect((await user.send('GET', '/ping', anonymous)).text).toBe('pong'),
  },
  {
    fact: 'GET /api/v1 tells the version; build begins 20',
    run: async ({ user }) => {
      const { status, body } = await user.send('GET', '/api/v1', anonymous);
      expect({ status, body }).toEqual({
        status: 200,
        body: {
          description: 'OpenWhisk API',
          api_version: '1.0.0',
          api_version_path: 'v1',
          build: expect.stringMatching(/^20/),
          buildno: expect.any(String),
          swagger_paths: { ui: '/docs', 'api-docs': '/api-docs' },
        },
      });
    },
  },
  {
    fact: 'the documentation is a Swagger UI',
    stands: 'SwaggerTests: respond to /docs with Swagger UI',
    run: async ({ user }) => {
      const moved = await user.send('GET', '/api/v1/docs', anonymous);
      expect([moved.status, moved.headers.location]).toEqual([308, 'docs/index.html?url=/api/v1/api-docs']);
      const { status, text } = await user.send('GET', '/api/v1/docs/index.html', anonymous);
      expect([status, text.includes('<title>Swagger UI</title>')]).toEqual([200, true]);
    },
  },
  {
    fact: 'the API describes itself in Swagger',
    stands: 'SwaggerTests: respond to /api-docs with Swagger XML',
    run: async ({ user }) =>
      expect((await user.send<object>('GET', '/api/v1/api-docs', anonymous)).body).toHaveProperty('swagger'),
  },
  {
    fact: 'list rows have definitions of their own',
    stands: 'SwaggerTests: respond to /api-docs including ActionMeta/ActionExecMeta/RuleMeta/TriggerMeta',
    run: async ({ user }) => {
      const { text } = await user.send('GET', '/api/v1/api-docs', anonymous);
      for (const name of ['ActionMeta', 'ActionExecMeta', 'RuleMeta', 'TriggerMeta']) {
        expect(text).toContain(`"${name}"`);
        expect(text).toContain(`"#/definitions/${name}"`);
      }
    },
  },
  {
    fact: 'a page that the documentation lacks: 404',
    stands: 'SwaggerTests: respond to invalid URI with status code 404',
    run: async ({ user }) => expect((await user.send('GET', '/api/v1/docs/dummy')).status).toBe(404),
  },
  {
    fact: 'GET /invokers tells how they are',
    stands: 'ControllerApiTests: return list of invokers',
    source: controller,
    run: async ({ user }) => {
      const { status, body } = await user.send<Record<string, string>>('GET', '/invokers', anonymous);
      expect(status).toBe(200);
      expect(Object.entries(body)[0]).toEqual([expect.stringMatching(/^invoker0\/0$/), 'up']);
    },
  },
  {
    fact: 'GET /invokers/healthy/count is how many of them are up',
    stands: 'ControllerApiTests: return healthy invokers status',
    source: controller,
    run: async ({ user }) => {
      const { body } = await user.send<Record<string, string>>('GET', '/invokers', anonymous);
      const up = Object.values(body).filter((state) => state === 'up').length;
      const counted = await user.send('GET', '/invokers/healthy/count', anonymous);
      expect([counted.status, counted.text]).toEqual([200, String(up)]);
    },
  },
  {
    fact: 'GET /invokers/ready is how many of all are up',
    stands: 'ControllerApiTests: return healthy invokers',
    source: controller,
    run: async ({ user }) => {
      const { status, body } = await user.send('GET', '/invokers/ready', anonymous);
      expect({ status, body }).toEqual({
        status: 200,
        body: { healthy: expect.stringMatching(/^[1-9]\d*\/[1-9]\d*$/) },
      });
    },
  },
];

/** Information about the server that needs no credentials. */
export const infoCases = table('info', 'core/controller/.../core/controller/RestAPIs.scala', rows);
