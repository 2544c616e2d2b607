-- What wrk sends, and the JSON that wrkLoad (src/load/wrk.ts) reads.
-- Arguments: file of headers ("Name: value" lines), body, file of paths, file for bodies of 2xx answers or "-",
-- "count" (statuses are counted one by one, which costs the client time) or "quick", seed, method.
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

local function lines_of(name)
  local lines = {}
  for line in io.lines(name) do
    table.insert(lines, line)
  end
  return lines
end

function init(args)
  wrk.method = args[7]
  wrk.body = args[2]
  for _, line in ipairs(lines_of(args[1])) do
    local name, value = line:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
  local paths = lines_of(args[3])
  if #paths == 1 then
    wrk.path = paths[1]
  else
    math.randomseed(tonumber(args[6]))
    local prepared = {}
    for i, path in ipairs(paths) do
      prepared[i] = wrk.format(nil, path)
    end
    function request()
      return prepared[math.random(#prepared)]
    end
  end
  if args[5] ~= "count" then
    return
  end
  statuses = {}
  local bodies = args[4] ~= "-" and io.open(args[4], "w") or nil
  function response(status, headers, body)
    statuses[status] = (statuses[status] or 0) + 1
    if bodies and status >= 200 and status < 300 then
      bodies:write(body, "\n")
      bodies:flush()
    end
  end
end

function done(summary, latency)
  local counts = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("statuses") or {}) do
      counts[status] = (counts[status] or 0) + count
    end
  end
  local pairs_of_counts = {}
  for status, count in pairs(counts) do
    table.insert(pairs_of_counts, string.format('"%d":%d', status, count))
  end
  local errors = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"durationUs":%d,"p50Us":%d,"p95Us":%d,"p99Us":%d,"maxUs":%d,' ..
    '"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d,"statuses":{%s}}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(95), latency:percentile(99),
    latency.max, errors.connect, errors.read, errors.write, errors.timeout, errors.status,
    table.concat(pairs_of_counts, ",")))
end
