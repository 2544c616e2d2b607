/** Greets whoever parameter `name` names. */
function main({ name = 'stranger' }) {
  return { greeting: `Hello, ${name}!` };
}

module.exports = { main };
