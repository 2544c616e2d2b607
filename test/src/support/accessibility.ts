import { AxeBuilder } from '@axe-core/playwright';
import type { Page } from 'playwright-core';

type Violations = Awaited<ReturnType<AxeBuilder['analyze']>>['violations'];

/**
 * What axe finds on a page: in light colours by all its rules but `without`, in dark ones by that of contrast, as the others
 * say the same of both.
 */
export async function violationsOf(
  page: Page,
  colorScheme: 'light' | 'dark',
  without: readonly string[] = [],
): Promise<Violations> {
  const axe = new AxeBuilder({ page });
  const ruled = colorScheme === 'light' ? axe.disableRules([...without]) : axe.withRules('color-contrast');
  return (await ruled.analyze()).violations;
}
