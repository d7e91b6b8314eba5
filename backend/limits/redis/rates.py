"""The counts of keys and tenants in Redis, exact over all replicas: each demand is decided by one script."""

from collections.abc import Sequence
from typing import cast

from backend.foundation.redis.client import await_answer
from backend.foundation.redis.commands import RedisClient
from backend.limits.domain.rates import WINDOW_SECONDS, LimitedParty, PartyUse, RateAnswer, RateDemand, SettledTurns

LEASE_SECONDS = 30
"""How long the place of a turn is kept that its process does not renew."""

_NO_LIMIT = -1
_MICROSECONDS = 1_000_000

# Each party has three keys: a hash of turns by seconds, one of tokens, and a sorted set of running turns by the time at
# which their leases end. The time is the server's own, so that clocks of replicas need not agree.
_COUNTING = """
local time = redis.call('TIME')
local now, microseconds = tonumber(time[1]), tonumber(time[2])
local window = tonumber(ARGV[1])

local function counted(key)
  local flat, seconds, sum = redis.call('HGETALL', key), {}, 0
  for i = 1, #flat, 2 do
    local second, amount = tonumber(flat[i]), tonumber(flat[i + 1])
    if math.abs(now - second) >= window then -- what is so far ahead was noted before the clock was set back
      redis.call('HDEL', key, flat[i])
    else
      seconds[#seconds + 1] = {second, amount}
      sum = sum + amount
    end
  end
  table.sort(seconds, function(a, b) return a[1] < b[1] end)
  return seconds, sum
end

local function reset(seconds)
  return #seconds > 0 and seconds[#seconds][1] + window - now or 0
end

local function wait(seconds, sum, wanted, limit)
  if limit < 0 then return 0 end
  local excess = sum + wanted - limit
  if excess <= 0 then return 0 end
  for _, each in ipairs(seconds) do
    excess = excess - each[2]
    if excess <= 0 then return each[1] + window - now end
  end
  return window
end

local function count(key, amount)
  redis.call('HINCRBY', key, now, amount)
  redis.call('EXPIRE', key, window + 1)
end
"""

_TAKE = f"""{_COUNTING}
local turns, lease, lease_seconds, begun = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local longest, is_known, each = 0, turns > 0, {{}}
for party = 0, #KEYS / 3 - 1 do
  local limits = 6 + party * 3
  local running = KEYS[party * 3 + 3]
  redis.call('ZREMRANGEBYSCORE', running, '-inf', now)
  local of_turns, turns_sum = counted(KEYS[party * 3 + 1])
  local of_tokens, tokens_sum = counted(KEYS[party * 3 + 2])
  local places = redis.call('ZCARD', running)
  local at_once = tonumber(ARGV[limits + 2])
  local turns_limit, tokens_wait = tonumber(ARGV[limits]), wait(of_tokens, tokens_sum, 1, tonumber(ARGV[limits + 1]))
  longest = math.max(longest, wait(of_turns, turns_sum, begun, turns_limit), tokens_wait)
  if at_once >= 0 and places + turns > at_once then longest = math.max(longest, 1) end
  is_known = is_known and redis.call('ZSCORE', running, lease .. '/0') ~= false
  each[party + 1] = {{
    turns = of_turns, sum = turns_sum, limit = turns_limit, tokens_wait = tokens_wait, places = places,
    tokens_sum = tokens_sum, tokens_reset = reset(of_tokens),
  }}
end
local is_taken = turns > 0 and not is_known and longest == 0
local uses = {{}}
for place, party in ipairs(each) do
  if is_taken then
    if begun > 0 then
      count(KEYS[place * 3 - 2], begun)
      party.turns[#party.turns + 1] = {{now, begun}}
      party.sum = party.sum + begun
    end
    for turn = 0, turns - 1 do redis.call('ZADD', KEYS[place * 3], now + lease_seconds, lease .. '/' .. turn) end
    redis.call('EXPIRE', KEYS[place * 3], lease_seconds + 1)
    party.places = party.places + turns
  end
  local sure = math.max(wait(party.turns, party.sum, 1, party.limit), party.tokens_wait)
  sure = math.max(0, sure * 1000000 - microseconds)
  uses[place] = {{party.sum, reset(party.turns), party.tokens_sum, party.tokens_reset, party.places, sure}}
end
if turns == 0 or is_known or is_taken then return {{1, 0, uses}} end
return {{0, longest, uses}}
"""

_SETTLE = f"""{_COUNTING}
local turns, lease, tokens = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
for party = 0, #KEYS / 3 - 1 do
  local given_back = 0
  for turn = 0, turns - 1 do
    given_back = given_back + redis.call('ZREM', KEYS[party * 3 + 3], lease .. '/' .. turn)
  end
  if given_back > 0 and tokens > 0 then count(KEYS[party * 3 + 2], tokens) end
end
return 1
"""

_RENEW = f"""{_COUNTING}
local turns, lease, lease_seconds = tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
for party = 0, #KEYS / 3 - 1 do
  local running = KEYS[party * 3 + 3]
  for turn = 0, turns - 1 do redis.call('ZADD', running, now + lease_seconds, lease .. '/' .. turn) end
  redis.call('EXPIRE', running, lease_seconds + 1)
end
return 1
"""


class RedisRateStore:
    """Implements `RateStore`; `window_seconds` is the minute, which a test may shorten."""

    def __init__(
        self, client: RedisClient, window_seconds: int = WINDOW_SECONDS, lease_seconds: int = LEASE_SECONDS
    ) -> None:
        self._take = client.register_script(_TAKE)
        self._settle = client.register_script(_SETTLE)
        self._renew = client.register_script(_RENEW)
        self._window_seconds = window_seconds
        self._lease_seconds = lease_seconds

    async def take(self, demand: RateDemand) -> RateAnswer:
        """Grant a demand where all parties have room for it."""
        limits = [number for party in demand.parties for number in _numbers(party)]
        arguments = [self._window_seconds, demand.turns, demand.lease_id, self._lease_seconds, demand.begun, *limits]
        answer = await await_answer(self._take(_keys(demand), arguments))
        granted, longest, uses = cast(tuple[int, int, list[list[int]]], answer)
        each_use = tuple(PartyUse(*counts, sure_seconds=sure / _MICROSECONDS) for *counts, sure in uses)
        return RateAnswer(bool(granted), longest, each_use)

    async def settle(self, ended: Sequence[SettledTurns]) -> None:
        """Give places back and count tokens."""
        for demand, tokens in ended:
            arguments = [self._window_seconds, demand.turns, demand.lease_id, tokens]
            await await_answer(self._settle(_keys(demand), arguments))

    async def renew(self, held: Sequence[RateDemand]) -> None:
        """Put the end of each lease off."""
        for demand in held:
            arguments = [self._window_seconds, demand.turns, demand.lease_id, self._lease_seconds]
            await await_answer(self._renew(_keys(demand), arguments))


def _keys(demand: RateDemand) -> list[str]:
    """Name the keys; in a cluster, what stands in braces keeps them on one server, as a script needs it."""
    beginnings = [f"ballast:rate:{{{demand.tenant}}}:{party.name}" for party in demand.parties]
    return [f"{beginning}:{count}" for beginning in beginnings for count in ("turns", "tokens", "running")]


def _numbers(party: LimitedParty) -> list[int]:
    limits = party.limits
    each = limits.turns_per_minute, limits.tokens_per_minute, limits.turns_at_once
    return [number if number is not None else _NO_LIMIT for number in each]
