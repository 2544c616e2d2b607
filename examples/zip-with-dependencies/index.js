const ms = require('ms');

/** Turns a duration such as `2 days` into milliseconds and back into words. */
function main({ duration = '1h' }) {
  const milliseconds = ms(duration);
  if (milliseconds === undefined) return { error: `'${duration}' is not a duration.` };
  return { milliseconds, words: ms(milliseconds, { long: true }) };
}

module.exports = { main };
