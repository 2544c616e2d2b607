/** Functions of kind `nodejs:default` that the cases run. */

/** Returns its arguments. */
export const echo = 'function main(args) { return args; }';

/** Greets `payload`, and logs the greeting. */
export const greet = `function main({ payload }) {
  const text = 'hello, ' + payload + '!';
  console.log(text);
  return { payload: text };
}`;

/** Counts the words of `payload`. */
export const countWords = `function main({ payload }) {
  const count = payload.split(' ').length;
  console.log("The message '" + payload + "' has", count, 'words');
  return { count };
}`;

/** Counts words after a short delay. */
export const countWordsLater = `function main({ payload }) {
  console.log("The message '" + payload + "' has some words");
  return new Promise((done) => setTimeout(() => done({ count: payload.split(' ').length }), 100));
}`;

/** Logs its parameters in the order of their names. */
export const logParameters = `function main(args) {
  const text = Object.keys(args).sort().map((key) => key + ': ' + args[key]).join(' ');
  console.log(text);
  return { text };
}`;

/** Waits for `sleepMs`, ms. */
export const sleep =
  'function main({ sleepMs }) { return new Promise((done) => setTimeout(() => done({ slept: true }), sleepMs)); }';

/** Returns the platform's data about the activation. */
export const context = `function main() {
  const names = ['API_HOST', 'API_KEY', 'NAMESPACE', 'ACTION_NAME', 'ACTION_VERSION', 'ACTIVATION_ID', 'DEADLINE'];
  return Object.fromEntries(names.map((name) => [name.toLowerCase(), process.env['__OW_' + name]]));
}`;

/** Fails with an application error. */
export const fail = "function main() { return { error: 'failed on purpose' }; }";

/** A conductor that returns its `action` and `state`, with `params` merged over its other arguments. */
export const conductor = `function main({ action, state, params, ...rest }) {
  if (rest.error) return rest;
  return { action, state, params: { ...rest, ...params } };
}`;

/** Adds one to `n`; fails without `n`. */
export const increment =
  "function main({ n }) { return n === undefined ? { error: 'missing parameter' } : { n: n + 1 }; }";

/** Splits `payload` into lines. */
export const split = "function main({ payload }) { return { lines: payload.split('\\n'), payload }; }";

/** Sorts lines. */
export const sort = 'function main({ lines }) { return { lines: lines.sort(), length: lines.length }; }';

/** Returns the first of `lines`. */
export const head = 'function main({ lines }) { return { lines: lines.slice(0, 1), num: 1 }; }';

/** Joins `lines`. */
export const join = "function main({ lines }) { return { lines, payload: lines.join('\\n') }; }";
