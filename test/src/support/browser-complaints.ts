import type { Page } from 'playwright-core';

/**
 * What the browser complains of on a page, and what the page asks of another origin than `origin`; the list grows as it happens.
 * The browser breaks requests off when an interface of the machine comes or goes, as those of sandboxes do: that is no complaint.
 */
export function complaintsOf(page: Page, origin: string): string[] {
  const complaints: string[] = [];
  page.on('console', (message) => {
    const isFault = message.type() === 'error' || message.type() === 'warning';
    if (isFault && !message.text().includes('ERR_NETWORK_CHANGED'))
      complaints.push(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (!['data:', 'blob:'].includes(url.protocol) && url.origin !== origin) complaints.push(`asks ${url.href}`);
  });
  return complaints;
}
