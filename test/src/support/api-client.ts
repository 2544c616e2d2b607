import { Agent, request as httpRequest } from 'node:http';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';

/** An answer over HTTP. */
export interface Answer<Body = JsonValue> {
  status: number;
  activationId: string | undefined;
  body: Body;
}

/** An activation record as the API gives it. */
export interface ApiActivation {
  activationId: string;
  cause?: string;
  name: string;
  namespace: string;
  version: string;
  start: number;
  end: number;
  duration: number;
  response: { status: string; success: boolean; result: JsonObject; size?: number };
  logs: string[];
  annotations: { key: string; value: JsonValue }[];
}

/** Options of the creation of an action. */
export interface ActionOptions {
  /** Default `nodejs:default`. */
  kind?: string;
  /** Image of an action of kind `blackbox`. */
  image?: string;
  main?: string;
  limits?: JsonObject;
  annotations?: JsonObject;
  parameters?: { key: string; value: JsonValue; init?: boolean }[];
}

const requestMs = 90_000;
const recordMs = 10_000;

/** The value of an annotation of a record. */
export function annotation(record: Pick<ApiActivation, 'annotations'>, key: string): JsonValue | undefined {
  return record.annotations.find((one) => one.key === key)?.value;
}

/** The text after the time and the stream's name of each line. */
export function logTexts(record: Pick<ApiActivation, 'logs'>): string[] {
  return record.logs.map((line) => line.replace(/^\S+ +(stdout|stderr): /, ''));
}

/** A caller of the REST API. */
export class ApiClient {
  private readonly agent = new Agent({ keepAlive: true });

  constructor(
    readonly url: string,
    readonly auth: string,
  ) {}

  as(auth: string): ApiClient {
    return new ApiClient(this.url, auth);
  }

  /** Sends a request below `/api/v1/namespaces/`. A string is sent unchanged, any other body as JSON. */
  request<Body = JsonObject>(method: string, path: string, body?: unknown): Promise<Answer<Body>> {
    const url = `${this.url}/api/v1/namespaces/${path}`;
    const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
    const headers: Record<string, string | number> = {
      authorization: `Basic ${Buffer.from(this.auth).toString('base64')}`,
    };
    if (text !== undefined) {
      headers['content-type'] = 'application/json';
      headers['content-length'] = Buffer.byteLength(text);
    }
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(url, { method, headers, agent: this.agent, timeout: requestMs }, (response) => {
        const parts: Buffer[] = [];
        response.on('data', (part: Buffer) => parts.push(part));
        response.on('error', reject);
        response.on('end', () => {
          const activationId = response.headers['x-openwhisk-activation-id'];
          const status = response.statusCode ?? 0;
          const told = Buffer.concat(parts).toString('utf8');
          try {
            const id = typeof activationId === 'string' ? activationId : undefined;
            resolve({ status, activationId: id, body: JSON.parse(told) as Body });
          } catch (error) {
            // For instance a proxy's own page.
            reject(new Error(`${method} ${path} was answered ${status}: ${told.slice(0, 200)}`, { cause: error }));
          }
        });
      });
      outgoing.on('timeout', () => outgoing.destroy(new Error(`No answer to ${method} ${path}.`)));
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  /** Creates or replaces an action; rejects if the platform refuses it. */
  async putAction(name: string, code: string | Buffer, options: ActionOptions = {}): Promise<JsonObject> {
    const { status, body } = await this.request('PUT', `_/actions/${name}?overwrite=true`, actionBody(code, options));
    if (status !== 200) throw new Error(`PUT of ${name} was answered ${status}: ${JSON.stringify(body)}`);
    return body;
  }

  /** Invokes and waits for the whole record (without logs). */
  invoke(name: string, payload: JsonObject = {}, query = 'blocking=true'): Promise<Answer<ApiActivation>> {
    return this.request<ApiActivation>('POST', `_/actions/${name}?${query}`, payload);
  }

  /** Invokes and waits for the result alone. */
  invokeForResult(name: string, payload: JsonObject = {}): Promise<Answer<JsonObject>> {
    return this.request<JsonObject>('POST', `_/actions/${name}?blocking=true&result=true`, payload);
  }

  /** Invokes without waiting and returns the activation's id. */
  async submit(name: string, payload: JsonObject = {}): Promise<string> {
    const { status, body } = await this.request<{ activationId: string }>('POST', `_/actions/${name}`, payload);
    if (status !== 202) throw new Error(`POST of ${name} was answered ${status}: ${JSON.stringify(body)}`);
    return body.activationId;
  }

  /** The stored record; a blocking answer comes shortly before it. Rejects if the record does not come. */
  async record(activationId: string | undefined, withinMs = recordMs): Promise<ApiActivation> {
    const beganMs = performance.now();
    for (;;) {
      const { status, body } = await this.request<ApiActivation>('GET', `_/activations/${activationId}`);
      if (status === 200) return body;
      if (performance.now() - beganMs > withinMs) throw new Error(`Activation ${activationId} has no record.`);
      await new Promise((done) => setTimeout(done, 20));
    }
  }

  /** Invokes, waits for the end, and returns the answer's status and the stored record with its logs. */
  async run(name: string, payload: JsonObject = {}): Promise<{ status: number; record: ApiActivation }> {
    const { status, activationId } = await this.invoke(name, payload);
    return { status, record: await this.record(activationId) };
  }
}

/** The body of an action's PUT; code in a buffer is a zip. */
export function actionBody(code: string | Buffer, options: ActionOptions = {}): JsonObject {
  const { kind = 'nodejs:default', image, main, limits, annotations = {}, parameters = [] } = options;
  return {
    exec: {
      kind,
      ...(image === undefined ? {} : { image }),
      code: typeof code === 'string' ? code : code.toString('base64'),
      ...(main === undefined ? {} : { main }),
    },
    ...(limits === undefined ? {} : { limits }),
    annotations: Object.entries(annotations).map(([key, value]) => ({ key, value })),
    parameters: parameters.map(({ key, value, init }) => ({ key, value, ...(init ? { init } : {}) })),
  };
}
