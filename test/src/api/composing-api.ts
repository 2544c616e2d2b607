// The API with actions whose code runs here, for tests of sequences and compositions.
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

/** The API with a few actions of alice; what they do may be changed. */
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

  /** Counts activations from 1 again, and gives actions other code; the n-th activation's id is `id(n)`. */
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

  /** Components are alice's, named as `a` or `pkg/a`. */
  putSequence(name: string, components: readonly string[], more: object = {}): Promise<void> {
    return this.put(name, { exec: { kind: 'sequence', components: components.map((one) => `/_/${one}`) }, ...more });
  }

  invoke(name: string, body: JsonValue = {}, query = 'blocking=true', as: Account = alice): Promise<Reply> {
    return this.api.request('POST', `/api/v1/namespaces/alice/actions/${name}?${query}`, { body, as });
  }

  /** Invokes, waits for the end and gives the record. */
  async run(name: string, body: JsonValue = {}): Promise<ApiRecord> {
    const { json } = await this.invoke(name, body);
    if (!isJsonObject(json as JsonValue) || !('activationId' in (json as JsonObject))) throw new Error('no record');
    return json as ApiRecord;
  }

  /** The stored record; rejects if there is none for long. */
  async stored(activationId: string | undefined): Promise<ApiRecord> {
    for (let tries = 0; ; tries++) {
      const reply = await this.api.request('GET', `/api/v1/namespaces/_/activations/${activationId}`);
      if (reply.status === 200) return reply.json as ApiRecord;
      if (tries > 500) throw new Error(`no record of ${activationId}`);
      await new Promise((done) => setTimeout(done, 10));
    }
  }
}
