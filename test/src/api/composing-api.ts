// The API with actions that run inside the test process, for tests of sequences and compositions.
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { alice, hello, startApi } from './harness.js';
import type { Account, Api, ApiSettings, Reply } from './harness.js';
import { simulatedActions } from './simulated-actions.js';
import type { SimulatedCode } from './simulated-actions.js';

/** An activation as the API shows it. */
export interface ApiRecord {
  activationId: string;
  cause?: string;
  duration: number;
  logs: string[];
  response: JsonObject;
  annotations: { key: string; value: JsonValue }[];
}

/** The value of an annotation of a record. */
export function annotation({ annotations }: ApiRecord, key: string): JsonValue | undefined {
  return annotations.find((one) => one.key === key)?.value;
}

/** The API with a few actions of alice, whose code a test can replace. */
export class ComposingApi {
  private constructor(
    readonly api: Api,
    private readonly code: Readonly<Record<string, SimulatedCode>>,
  ) {}

  static async start(code: Readonly<Record<string, SimulatedCode>>, settings: ApiSettings = {}): Promise<ComposingApi> {
    const composing = new ComposingApi(await startApi(settings), code);
    for (const name of Object.keys(code)) await composing.put(name, hello);
    return composing;
  }

  /**
   * Restarts the activation ids from 1 and replaces actions' code. Returns a function from n to the n-th activation's
   * id.
   */
  reset(other: Readonly<Record<string, SimulatedCode>> = {}): (serial: number) => string {
    this.api.invocations.length = 0;
    const actions = simulatedActions({ ...this.code, ...other });
    this.api.onInvoke(actions.answer);
    return actions.id;
  }

  async put(name: string, body: object, as: Account = alice): Promise<void> {
    const reply = await this.api.request('PUT', `/api/v1/namespaces/_/actions/${name}?overwrite=true`, { body, as });
    if (reply.status !== 200) throw new Error(`PUT ${name}: ${reply.text}`);
  }

  async putPackage(name: string, body: object): Promise<void> {
    const reply = await this.api.request('PUT', `/api/v1/namespaces/_/packages/${name}?overwrite=true`, { body });
    if (reply.status !== 200) throw new Error(`PUT ${name}: ${reply.text}`);
  }

  /** Creates or replaces a sequence; components are alice's, named `a` or `pkg/a`. */
  putSequence(name: string, components: readonly string[], more: object = {}): Promise<void> {
    return this.put(name, { exec: { kind: 'sequence', components: components.map((one) => `/_/${one}`) }, ...more });
  }

  invoke(name: string, body: JsonValue = {}, query = 'blocking=true', as: Account = alice): Promise<Reply> {
    return this.api.request('POST', `/api/v1/namespaces/alice/actions/${name}?${query}`, { body, as });
  }

  /** Invokes an action, waits for its end and returns the record. */
  async run(name: string, body: JsonValue = {}): Promise<ApiRecord> {
    const { json } = await this.invoke(name, body);
    if (!isJsonObject(json as JsonValue) || !('activationId' in (json as JsonObject))) throw new Error('no record');
    return json as ApiRecord;
  }

  /** The stored record; rejects if the record is still missing after a timeout. */
  async stored(activationId: string | undefined): Promise<ApiRecord> {
    for (let tries = 0; ; tries++) {
      const reply = await this.api.request('GET', `/api/v1/namespaces/_/activations/${activationId}`);
      if (reply.status === 200) return reply.json as ApiRecord;
      if (tries > 500) throw new Error(`no record of ${activationId}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }
}
