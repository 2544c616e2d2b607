import { describe, expect, test } from '@jest/globals';
import { RequirementsError, validateRequirements } from './action-annotations.js';

describe('annotation requirements', () => {
  test('names with extras and versions pass, normalised, sorted, once', () => {
    const given = [' rapidocr ', 'numpy >=1.26, <3', 'uvicorn[standard,x] == 0.30.*', 'numpy>=1.26,<3', 'a'];
    expect(validateRequirements(given)).toEqual(['a', 'numpy>=1.26,<3', 'rapidocr', 'uvicorn[standard,x]==0.30.*']);
    expect(validateRequirements([])).toEqual([]);
  });

  test.each([
    '-r other.txt',
    '--index-url=http://x',
    './local',
    '/etc/passwd',
    'https://host/x.whl',
    'name @ https://host/x.whl',
    'git+https://host/x',
    "x; python_version<'4'",
    'x==',
    'x==-1',
    'x\n--pre',
    '',
    'a'.repeat(201),
    1,
    null,
    undefined,
    {},
  ])('%j is refused', (item) => {
    expect(() => validateRequirements([item])).toThrow(RequirementsError);
  });

  test.each(['numpy', {}, null, 1, Array(101).fill('a')])('%j is no list of packages', (value) => {
    expect(() => validateRequirements(value)).toThrow(/'requirements'/);
  });
});
