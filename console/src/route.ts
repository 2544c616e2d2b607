// The page that is shown, from the address after `#`.
import { computed, signal } from '@preact/signals';

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

/** The parts of the address, decoded: `#/devices/GPU-1` has `devices` and `GPU-1`. */
export const route = computed(() =>
  hash.value
    .replace(/^#\/?/, '')
    .split('/')
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part;
      }
    }),
);

/** The address of a page. */
export function hrefOf(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}
