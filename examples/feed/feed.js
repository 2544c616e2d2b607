// A feed is an action that `wsk` calls when a trigger that names it is created, read, changed or deleted. This one only
// says what it was asked; a real one would tell an event source to fire `triggerName` with `authKey`, or to stop.
function main({ lifecycleEvent, triggerName, authKey, topic }) {
  const needsTopic = lifecycleEvent === 'CREATE' || lifecycleEvent === 'UPDATE';
  if (needsTopic && !topic) return { error: 'The feed needs to know the topic: --feed-param topic NAME' };
  console.log(`${lifecycleEvent} for ${triggerName}`);
  return { lifecycleEvent, triggerName, topic: topic ?? null, mayFire: typeof authKey === 'string' };
}

module.exports = { main };
