import { expect, test } from '@jest/globals';
import { readTraceContext } from './tracing.js';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

test('a context is read with its state', () => {
  expect(readTraceContext({ traceparent })).toEqual({ traceparent });
  expect(readTraceContext({ traceparent, tracestate: 'a=1' })).toEqual({ traceparent, tracestate: 'a=1' });
  expect(readTraceContext({ traceparent, tracestate: 'a'.repeat(513) })).toEqual({ traceparent });
});

test.each([
  undefined,
  '',
  traceparent.toUpperCase(),
  `${traceparent}, ${traceparent}`,
  traceparent.replace(/^00/, 'ff'),
  `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
  `00-0af7651916cd43dd8448eb211c80319c-${'0'.repeat(16)}-01`,
  17,
])('%p is no context', (given) => {
  expect(readTraceContext({ traceparent: given })).toBeUndefined();
});
