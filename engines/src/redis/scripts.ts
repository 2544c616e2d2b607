/** A Lua script: Redis runs it as one step. */
export interface Script {
  readonly lua: string;
}

/** Every script goes by the clock of Redis: those of the processes may differ. */
const now = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
`;

const script = (lua: string): Script => ({ lua: now + lua });

/** KEYS counter; ARGV window length, ms, what to add. Gives the count. */
export const addToWindow = script(`
local window = text(math.floor(now / ARGV[1]))
if redis.call('HGET', KEYS[1], 'window') ~= window then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'window', window)
end
redis.call('PEXPIRE', KEYS[1], 2 * ARGV[1])
return redis.call('HINCRBY', KEYS[1], 'count', ARGV[2])
`);

/** KEYS holders; ARGV token, time to hold, ms. Gives the number of holders. */
export const hold = script(`
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', text(now))
redis.call('ZADD', KEYS[1], text(now + ARGV[2]), ARGV[1])
local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
redis.call('PEXPIRE', KEYS[1], text(last[2] - now))
return redis.call('ZCARD', KEYS[1])
`);

/** KEYS holders. Gives the number of those whose time is not over. */
export const countHolders = script(`
return redis.call('ZCOUNT', KEYS[1], '(' .. text(now), '+inf')
`);

/** KEYS holders. Gives those whose time is not over. */
export const listHolders = script(`
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')
`);

/** KEYS holders. Gives those whose time is not over, each followed by how much of it is left, ms. */
export const listHoldersLeft = script(`
local found = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf', 'WITHSCORES')
for at = 2, #found, 2 do found[at] = text(found[at] - now) end
return found
`);

/**
 * The lease of KEYS[1] as it is now: holder and epoch, or nothing. After a step of the clock back it lasts no longer
 * than it was asked for.
 */
const leaseNow = `
local function leaseNow()
  local found = redis.call('HMGET', KEYS[1], 'holder', 'epoch', 'until', 'ttl')
  if not found[1] or tonumber(found[3]) <= now then return nil end
  if found[3] - now > tonumber(found[4]) then
    redis.call('HSET', KEYS[1], 'until', text(now + found[4]))
    redis.call('PEXPIRE', KEYS[1], found[4])
  end
  return { found[1], found[2] }
end
local function lastFor(ttl)
  redis.call('HSET', KEYS[1], 'until', text(now + ttl), 'ttl', ttl)
  redis.call('PEXPIRE', KEYS[1], ttl)
end
`;

/**
 * KEYS lease, last epoch, birth; ARGV holder, ttl ms. Gives the epoch, or nothing. A Redis that has started may have
 * forgotten who holds what: a lease that it does not know is free only when its time would be over.
 */
export const acquireLease = script(`${leaseNow}
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local birth = redis.call('HMGET', KEYS[3], 'run', 'since')
if birth[1] ~= run or tonumber(birth[2]) > now then
  birth[2] = text(now)
  redis.call('HSET', KEYS[3], 'run', run, 'since', birth[2])
end
local lease = leaseNow()
if lease and lease[1] ~= ARGV[1] then return nil end
if not lease and now < birth[2] + ARGV[2] then return nil end
local epoch = text(math.max((redis.call('GET', KEYS[2]) or 0) + 1, now))
redis.call('SET', KEYS[2], epoch)
redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'epoch', epoch)
lastFor(ARGV[2])
return epoch
`);

/** KEYS lease; ARGV epoch, ttl ms. Gives 1 if it was renewed, else 0. */
export const renewLease = script(`${leaseNow}
local lease = leaseNow()
if not lease or lease[2] ~= ARGV[1] then return 0 end
lastFor(ARGV[2])
return 1
`);

/** KEYS lease; ARGV epoch. */
export const releaseLease = script(`
if redis.call('HGET', KEYS[1], 'epoch') == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 0
`);

/** KEYS lease. Gives holder and epoch, or nothing. */
export const currentLease = script(`${leaseNow}
return leaseNow()
`);

/** KEYS rows, their ends; removes those whose time is over. */
const forgetRows = `
local over = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', text(now))
for _, key in ipairs(over) do
  redis.call('HDEL', KEYS[1], key)
  redis.call('ZREM', KEYS[2], key)
end
`;

/** KEYS rows, their ends; ARGV key, value, channel, news, ttl ms or nothing. */
export const setRow = script(`${forgetRows}
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if ARGV[5] == '' then redis.call('ZREM', KEYS[2], ARGV[1])
else redis.call('ZADD', KEYS[2], text(now + ARGV[5]), ARGV[1]) end
redis.call('PUBLISH', ARGV[3], ARGV[4])
return 0
`);

/** KEYS rows, their ends; ARGV key, channel, news. */
export const deleteRow = script(`${forgetRows}
if redis.call('HDEL', KEYS[1], ARGV[1]) == 1 then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return 0
`);

/** KEYS rows, their ends. Gives keys and values by turns. */
export const readRows = script(`${forgetRows}
return redis.call('HGETALL', KEYS[1])
`);

/** KEYS lock; ARGV token. Ends a submission that is still ours. */
export const releaseSubmission = script(`
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
`);
