import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { actionPath, hello } from './harness.js';
import type { Api, Reply, RequestOptions } from './harness.js';

/** Calls about triggers and rules in the caller's own namespace. */
export class TriggerCalls {
  constructor(private readonly api: Api) {}

  trigger(method: string, name: string, body?: unknown, options: RequestOptions = {}): Promise<Reply> {
    return this.call(method, 'triggers', name, body, options);
  }

  rule(method: string, name: string, body?: unknown, options: RequestOptions = {}): Promise<Reply> {
    return this.call(method, 'rules', name, body, options);
  }

  /** Creates a trigger, an action and a rule that links them. */
  async link(rule: string, trigger: string, action: string): Promise<void> {
    const statuses = [
      (await this.trigger('PUT', `${trigger}?overwrite=true`, {})).status,
      (await this.api.request('PUT', `${actionPath(action)}?overwrite=true`, { body: hello })).status,
      (await this.rule('PUT', rule, { trigger: `/_/${trigger}`, action: `/_/${action}` })).status,
    ];
    if (statuses.some((status) => status !== 200)) throw new Error(`a rule could not be made: ${statuses.join()}`);
  }

  /** Fires a trigger and resolves with its record. */
  async fired(trigger: string, payload?: unknown, options: RequestOptions = {}): Promise<WhiskActivation> {
    const reply = await this.trigger('POST', trigger, payload, options);
    if (reply.status !== 202) throw new Error(`the fire was answered ${reply.status}: ${reply.text}`);
    const { activationId } = reply.json as { activationId: string };
    const record = await this.api.request('GET', `/api/v1/namespaces/_/activations/${activationId}`);
    if (record.status !== 200) throw new Error(`a fire was accepted and has no record: ${record.text}`);
    return record.json as WhiskActivation;
  }

  private call(method: string, kind: string, name: string, body: unknown, options: RequestOptions): Promise<Reply> {
    const [plain = '', query] = name.split('?');
    const path = `/api/v1/namespaces/_/${kind}/${encodeURIComponent(plain)}${query === undefined ? '' : `?${query}`}`;
    return this.api.request(method, path, { ...options, ...(body !== undefined && { body }) });
  }
}
