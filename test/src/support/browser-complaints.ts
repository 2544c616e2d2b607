import type { ConsoleMessage } from 'playwright-core';

/**
 * Whether the browser complains of the page. It breaks requests off when an interface of the machine comes or goes, as those of
 * sandboxes do.
 */
export function isComplaint(message: ConsoleMessage): boolean {
  if (message.text().includes('ERR_NETWORK_CHANGED')) return false;
  return message.type() === 'error' || message.type() === 'warning';
}
