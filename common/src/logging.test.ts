import { expect, test } from '@jest/globals';
import { createLogger, transactionLogger } from './logging.js';

function captured(): { lines: Record<string, unknown>[]; destination: { write(line: string): void } } {
  const lines: Record<string, unknown>[] = [];
  return { lines, destination: { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) } };
}

test('lines of a request carry its transaction id', () => {
  const { lines, destination } = captured();
  const logger = createLogger({ level: 'info', destination });
  const request = transactionLogger(logger, 'abc', false);
  request.info('seen');
  request.debug('unseen');
  expect(lines).toEqual([{ level: 30, time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/), transid: 'abc', msg: 'seen' }]);
});

test('extra logging shows debug lines of one request only', () => {
  const { lines, destination } = captured();
  const logger = createLogger({ level: 'warn', destination });
  transactionLogger(logger, 'extra', true).debug('seen');
  transactionLogger(logger, 'plain', false).debug('unseen');
  logger.debug('unseen');
  expect(lines.map((line) => line.transid)).toEqual(['extra']);
});

test('extra logging does not make a chatty logger quieter', () => {
  const { lines, destination } = captured();
  transactionLogger(createLogger({ level: 'trace', destination }), 'extra', true).trace('seen');
  expect(lines).toHaveLength(1);
});
