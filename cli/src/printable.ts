// Texts of other people on a terminal.

/** Controls of C0 without tab, line feed and carriage return, of C1, and those that reorder text of two directions. */
const controls = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u202a-\\u202e\\u2066-\\u2069';
const colour = '\\u001b\\[(?:0|1|31|32)m';
/** A carriage return may end a line, as in CSV, and do nothing else. */
const unsafe = new RegExp(`(${colour})|[${controls}]|\\r(?!\\n)`, 'g');
/** JSON text has no other controls of C0 than line feeds. */
const unsafeInJson = /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * The text without control characters, by which names and logs would move the cursor, hide lines or send keys. Tabs and
 * line feeds stay, and, with `keepsColours`, the colours that this program uses.
 */
export function printable(text: string, keepsColours = false): string {
  return text.replace(unsafe, (_, colours: string | undefined) => (keepsColours ? (colours ?? '') : ''));
}

/** The JSON text with control characters as escapes, which leaves its value unchanged. */
export function printableJson(text: string): string {
  return text.replace(unsafeInJson, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
