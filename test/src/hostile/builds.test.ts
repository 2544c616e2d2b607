// Attacks on the builds of other tenants' functions.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { canCompile } from '../native/compiler.js';
import { caseMs, openTenancy } from './tenants.js';
import type { Tenancy } from './tenants.js';

const suite = hasNative() && canCompile ? describe : describe.skip;
const kind = 'native:default';
/** An attacker's limit, ms; a victim must not wait for it. */
const timeoutMs = 15_000;
/** A source that keeps the assembler busy for hours, in little memory. */
const endless = (at: number): string => {
  const [begin, end] = ['.rept 30000\\n'.repeat(3), '.endr\\n'.repeat(4)];
  return `asm("${begin}.rept 1\\n${end}"); int number_${at};`;
};
const victims = 'const char *gpuwhisk_main(const char *json) { (void)json; return "{\\"built\\":true}"; }';

suite('builds', () => {
  let tenancy: Tenancy;
  beforeAll(async () => {
    tenancy = await openTenancy();
  }, caseMs);
  afterAll(() => tenancy.platform.stop(), caseMs);

  test(
    'of one tenant do not wait for the endless ones of another, which end with the limit of their action',
    async () => {
      const { attacker, victim } = tenancy;
      const names = Array.from({ length: 3 }, (_, at) => `endless${at}`);
      for (const [at, name] of names.entries()) {
        await attacker.putAction(name, endless(at), { kind, limits: { timeout: timeoutMs } });
      }
      await victim.putAction('mine', victims, { kind });
      const began = performance.now();
      const attacks = names.map(async (name) => {
        const { record } = await attacker.run(name);
        return { ms: performance.now() - began, error: record.response.result.error };
      });
      // Two builds run at once.
      await new Promise((done) => setTimeout(done, 1000));
      const { status, body } = await victim.invokeForResult('mine', {});
      expect({ status, body }).toEqual({ status: 200, body: { built: true } });
      expect(performance.now() - began).toBeLessThan(timeoutMs);
      const { ms, error } = await Promise.race(attacks);
      expect(error).toMatch(/exceeded its time limits of 15000 milliseconds/);
      expect(ms).toBeLessThan(2 * timeoutMs);
      await Promise.all(attacks);
    },
    2 * caseMs,
  );

  test(
    'see no descriptor of the process that builds: a source that includes it ends at once',
    async () => {
      await tenancy.attacker.putAction('spy', '#include "/proc/2/fd/1"\nint spy;', { kind });
      const began = performance.now();
      const { record } = await tenancy.attacker.run('spy');
      expect(record.response.success).toBe(false);
      expect(record.logs.join('\n')).toMatch(/Permission denied/);
      expect(performance.now() - began).toBeLessThan(timeoutMs);
    },
    caseMs,
  );
});
