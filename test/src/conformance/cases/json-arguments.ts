/** Values that must be returned unchanged, as parameters and as annotations. */
export const jsonValues = {
  string: 'This is a string',
  strNum: '9',
  number: 8,
  bignumber: 12345678912.125,
  numArr: [44, 55],
  strArr: ['44', '55'],
  objArr: [
    { name: 'someName', required: true },
    { name: 'events', count: 10 },
  ],
  object: { objString: 'aString', objNum: 300, objBool: false, objNumArr: [1, 2], objStrArr: ['1', '2'] },
};

/** Keys with spaces, and text that looks like JSON. */
export const fileValues = {
  'a key': 'a value',
  'a bool': true,
  objKey2: { 'another object': { 'some string': '1111' } },
  'a bool arr': [true, false, true],
  strThatLooksLikeJSON: '{"someKey": "someValue"}',
};

/** Characters that JSON escapes. */
export const escapedValues = {
  key1: { nonascii: '日本語' },
  key2: { valid: 'J\\SO"N' },
  '"key"with\\escapes': { valid: 'JSON' },
  'another"escape"': { valid: '\\nJ\\rO\\tS\\bN\\f' },
};

/** Parameters or annotations in the API's form. */
export function pairs(values: object): { key: string; value: unknown }[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: value as unknown }));
}

/** Values as arguments of `wsk`: texts that are not JSON unchanged, other values as JSON. */
export function argumentFlags(values: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(values).flatMap(([key, value]) => {
    const text = value === jsonValues.string ? jsonValues.string : JSON.stringify(value);
    return ['-p', key, text, '-a', key, text];
  });
}
