package redisstore

import "github.com/redis/go-redis/v9"

// The scripts, each about one record, KEYS[1]: a hash of
//
//	token   of the latest claim
//	until   the end of its lease, or 0 once it was released
//	digest  of the payload of the claim; may be empty
//	result  of the work; missing until the record is completed
//
// The server drops the record when its retention ends. Arguments are in milliseconds; the
// server's clock is read in microseconds, which a Lua number holds exactly for
// another two centuries.
const (
	clock = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function integer(n) return string.format('%.0f', n) end
`

	// heldBy computes whether the claim with the token ARGV[1] has the record, and its result.
	heldBy = `
local record = redis.call('HMGET', KEYS[1], 'token', 'result')
local held, result = record[1] == ARGV[1], record[2]
`
)

// acquire: ARGV is the digest, the lease and the time to keep the record for. A token
// begins at the time in microseconds, so that it is larger than any token of a dropped record, and
// grows by at least one.
var acquire = redis.NewScript(clock + `
local record = redis.call('HMGET', KEYS[1], 'token', 'until', 'digest', 'result')
local token, lapse, digest, result = record[1], record[2], record[3], record[4]
if result then
	if digest ~= '' and ARGV[1] ~= '' and digest ~= ARGV[1] then
		return {'mismatched'}
	end
	return {'completed', result}
end
if token and now < tonumber(lapse) then
	return {'in progress', tonumber(lapse) - now}
end
local claim = now
if token then
	claim = math.max(claim, token + 1)
end
redis.call('HSET', KEYS[1], 'token', integer(claim), 'until', integer(now + ARGV[2] * 1000), 'digest', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {'acquired', claim}
`)

// complete: ARGV is the token, the result and the retention.
var complete = redis.NewScript(heldBy + `
if held and not result then
	redis.call('HSET', KEYS[1], 'result', ARGV[2])
	redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return held and 1 or 0
`)

// release: ARGV is the token. The record stays, so that the next token is larger even if the
// server's clock changes.
var release = redis.NewScript(heldBy + `
if not held or result then
	return 0
end
redis.call('HSET', KEYS[1], 'until', '0')
return 1
`)

// extend: ARGV is the token and the lease.
var extend = redis.NewScript(clock + heldBy + `
if not held or result then
	return 0
end
redis.call('HSET', KEYS[1], 'until', integer(now + ARGV[2] * 1000))
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
	redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
`)
