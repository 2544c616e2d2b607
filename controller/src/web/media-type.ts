/** A media type with its parameters, from a Content-Type header. */
export interface MediaType {
  /** `type/subtype`, lower case. */
  readonly name: string;
  /** Parameters other than the charset, unchanged: `; a=b`, or ''. */
  readonly parameters: string;
  /** Whether the header names a charset. */
  readonly hasCharset: boolean;
}

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const typePattern = new RegExp(`^\\s*(${token}/${token})\\s*`);
const parameterPattern = new RegExp(`\\s*;\\s*(${token})\\s*=\\s*(${token}|"(?:[^"\\\\]|\\\\.)*")\\s*`, 'y');

const plainJson: MediaType = { name: 'application/json', parameters: '', hasCharset: false };

/** Parses a Content-Type header; undefined for an invalid media type. */
export function parseMediaType(text: string): MediaType | undefined {
  if (text === plainJson.name) return plainJson;
  const match = typePattern.exec(text);
  if (match === null) return undefined;
  let parameters = '';
  let hasCharset = false;
  parameterPattern.lastIndex = match[0].length;
  for (let at = match[0].length; at < text.length; at = parameterPattern.lastIndex) {
    const parameter = parameterPattern.exec(text);
    if (parameter === null) return undefined;
    const [, key = '', value = ''] = parameter;
    if (key.toLowerCase() === 'charset') hasCharset = true;
    else parameters += `; ${key}=${value}`;
  }
  return { name: (match[1] as string).toLowerCase(), parameters, hasCharset };
}

/** Types whose text is always UTF-8 and that are written without a charset. */
const fixedCharset = new Set([
  'application/json',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/problem+json',
  'application/vnd.api+json',
  'application/x-www-form-urlencoded',
  'text/event-stream',
]);

/** Types of text in any charset, in addition to those of `text/`. */
const openApplication = new Set(
  [
    'atom+xml',
    'base64',
    'javascript',
    'problem+xml',
    'rss+xml',
    'soap+xml',
    'vnd.google-earth.kml+xml',
    'x-latex',
    'x-vrml',
    'xhtml+xml',
    'xml',
    'xml-dtd',
  ].map((subtype) => `application/${subtype}`),
);

const openText = new Set(
  [
    'asp',
    'cache-manifest',
    'calendar',
    'css',
    'csv',
    'html',
    'markdown',
    'mcf',
    'plain',
    'richtext',
    'tab-separated-values',
    'uri-list',
    'vnd.wap.wml',
    'vnd.wap.wmlscript',
    'x-asm',
    'x-c',
    'x-component',
    'x-h',
    'x-java-source',
    'x-pascal',
    'x-script',
    'x-scriptcsh',
    'x-scriptelisp',
    'x-scriptksh',
    'x-scriptlisp',
    'x-scriptperl',
    'x-scriptperl-module',
    'x-scriptphyton',
    'x-scriptrexx',
    'x-scriptscheme',
    'x-scriptsh',
    'x-scripttcl',
    'x-scripttcsh',
    'x-scriptzsh',
    'x-server-parsed-html',
    'x-setext',
    'x-sgml',
    'x-speech',
    'x-uuencode',
    'x-vcalendar',
    'x-vcard',
    'xml',
  ].map((subtype) => `text/${subtype}`),
);

/** The type of form fields. */
export const formType = 'application/x-www-form-urlencoded';

/** Whether a body of this type is JSON. */
export function isJsonType({ name }: MediaType): boolean {
  return name === 'application/json' || name.endsWith('+json');
}

/**
 * Whether a body of this type is bytes rather than text, by Pekko HTTP's table as in OpenWhisk. A type that is missing in
 * the table is bytes unless it has a charset.
 */
export function isBinaryType({ name, hasCharset }: MediaType): boolean {
  if (name.startsWith('multipart/')) return true;
  if (fixedCharset.has(name) || openApplication.has(name) || openText.has(name)) return false;
  return knownBinary(name) || !hasCharset;
}

/** Whether a main type is bytes even with a charset. */
function knownBinary(name: string): boolean {
  return /^(?:audio|font|image|message|video)\//.test(name) || name === 'application/octet-stream';
}

/** A Content-Type header's value for a body of this type; text is written as UTF-8. */
export function contentTypeOf(type: MediaType): string {
  const { name, parameters } = type;
  const named = name + parameters;
  return isBinaryType(type) || isJsonType(type) || fixedCharset.has(name) ? named : `${named}; charset=UTF-8`;
}
