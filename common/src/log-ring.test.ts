import { expect, test } from '@jest/globals';
import { LogRing, createLogger, transactionLogger } from './logging.js';

function ring(maxLines: number, maxBytes = 1e6): { ring: LogRing; passedOn: string[] } {
  const passedOn: string[] = [];
  return { ring: new LogRing({ write: (line) => void passedOn.push(line) }, { maxLines, maxBytes }), passedOn };
}

test('remembers the last lines and passes all on', () => {
  const { ring: lines, passedOn } = ring(3);
  for (let number = 1; number <= 20; number++) {
    lines.write(`line ${number}\n`);
    expect(lines.find({})).toEqual(
      Array.from({ length: Math.min(3, number) }, (_, at) => `line ${Math.max(0, number - 3) + at + 1}`),
    );
  }
  expect(passedOn).toHaveLength(20);
});

test('remembers no more than its bytes', () => {
  const { ring: lines } = ring(100, 20);
  lines.write('0123456789');
  lines.write('abcdefghij');
  lines.write('x');
  expect(lines.find({})).toEqual(['abcdefghij', 'x']);
  lines.write('longer than everything');
  expect(lines.find({})).toEqual([]);
});

test('finds lines by transaction id and text', () => {
  const { ring: lines } = ring(100);
  const logger = createLogger({ level: 'info', destination: lines });
  transactionLogger(logger, 'abc', false).info('first');
  transactionLogger(logger, 'abcd', false).info('abc second');
  logger.info('no "transid" here');
  lines.write('{"transid":"abc", cut');
  const messages = (found: string[]): string[] => found.map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(messages(lines.find({ transactionId: 'abc' }))).toEqual(['first']);
  expect(messages(lines.find({ text: 'SECOND' }))).toEqual(['abc second']);
  expect(lines.find({ transactionId: 'abc', text: 'second' })).toEqual([]);
});
