import type { GpuNeed } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';

/** The last activation of a function: what an instance of it is launched with. */
export interface LastRequest {
  /** Without arguments, but for those that code is loaded with. */
  message: ActivationMessage;
  need: GpuNeed;
}

/** What is kept of an activation. */
export function lastRequestOf(message: ActivationMessage, need: GpuNeed): LastRequest {
  const { content, initArgs } = message;
  const loading = Object.entries(content ?? {}).filter(([name]) => initArgs.includes(name));
  return { message: { ...message, content: Object.fromEntries(loading) }, need };
}
