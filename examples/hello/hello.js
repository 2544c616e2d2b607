/** Greets the person whose name parameter `name` gives. */
function main({ name = 'stranger' }) {
  return { greeting: `Hello, ${name}!` };
}

module.exports = { main };
