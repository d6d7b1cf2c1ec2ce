-- One limit: a token line in one string. What keeps its numbers exact is in settings.rs, what the
-- identity of a booking is good for in script.rs.
--
-- KEYS[1]  the limit
-- ARGV[1]  numbers, packed: the operation, the time (0 for the server's), how long to keep the key
--          at least, the settings that the caller believes in, and what the operation needs

local asked = ARGV[1]
local op, now, keep, version, token, num, den, cap, a, b = struct.unpack('<dddddddddd', asked)
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end

-- A limit that is not there is full.
local epoch, start, origin, spent, seq, rest = 0, now, 0, -cap, 0, ''
local differs, newer = 0, nil
local stored = redis.call('GET', KEYS[1])
if stored then
  local v, t, n, d, c
  v, t, n, d, c, epoch, start, origin, spent, seq = struct.unpack('<dddddddddd', stored)
  if v ~= version or t ~= token or n ~= num or d ~= den or c ~= cap then
    -- The server has forgotten what was set, and the caller has not.
    if version > v and t == token then newer = { version, num, den, cap } end
    differs = 1
    version, token, num, den, cap = v, t, n, d, c
  end
  if #stored > 80 then rest = string.sub(stored, 81) end
end

-- What is minted, in whole grains, and what is left over. Each product is below 2^53.
local line, part = math.huge, 0
if den == 1 then
  line = origin + (now > start and now - start or 0) * num
elseif den > 1 then
  local elapsed = now > start and now - start or 0
  local left = elapsed % den
  part = left * num % den
  line = origin + (elapsed - left) / den * num + (left * num - part) / den
end

local BOOK, GIVE_BACK, SET = 0, 1, 2
local NOTHING, NOW, LATER, LATE, EXCEEDS_BURST, NO_ROOM, DONE, REFUSED = 0, 1, 2, 3, 4, 5, 6, 7
local LAP = 2 ^ 50

-- Whether the bucket has been full for so long that nothing counts any more of what was booked.
local full = den > 0 and (not stored or line - spent - cap >= num / den and num > 0)

-- The usual requests come before what they do without: each function costs a tenth of a microsecond.
local at, answers, booked = 65, nil, false
if op == BOOK and den > 0 and differs == 0 and line < LAP * 2 and (full or spent + cap > line) then
  local first = a * token
  if full and first > 0 and first <= cap then
    epoch, start, origin, spent, line, rest = math.max(now, epoch + 8), now, 0, -cap, 0, ''
    part, full = 0, false
  end
  while at < #asked and not full do
    local n, wait = a, b
    if at > 65 then n, wait = struct.unpack('<dd', asked, at) end
    local need = n * token
    local finish = spent + need
    if need <= 0 or need > cap then break end
    local answer
    if finish <= line
      or rest == '' and (wait < 0 or den == 1 and now >= start and finish <= line + wait * num)
        and finish - line + cap < LAP * 4 then
      seq = seq + 1
      answer = struct.pack('<ddddd', finish <= line and NOW or LATER, seq, 2, spent, finish)
      spent, booked = finish, true
    elseif wait == 0 and rest == '' then
      answer = struct.pack('<dddd', LATE, 0, 1, finish)
    else
      break
    end
    answers = answers and answers .. answer or answer
    at = at + 16
  end
  if at > #asked then
    if booked then
      local value = struct.pack('<dddddddddd', version, token, num, den, cap, epoch, start, origin, spent, seq) .. rest
      if version > 0 or num == 0 then
        redis.call('SET', KEYS[1], value)
      else
        local refill = math.ceil((spent + cap - line) * den / num / 1000)
        redis.call('SET', KEYS[1], value, 'PX', refill > keep and math.min(refill, 1e15) or keep)
      end
    end
    return struct.pack('<ddddd', 0, now, epoch, start, origin) .. answers
  end
end

local STATE = '<dddddddddd'
local REST, REST_BYTES = '<ddddddd', 56
local MOST_BITS = 32768

local function minted(time)
  if den == 0 then return math.huge, 0 end
  local elapsed = time > start and time - start or 0
  local left = elapsed % den
  local parts = left * num % den
  return origin + (elapsed - left) / den * num + (left * num - parts) / den, parts
end

-- What most calls have no use for.
local floor, last_step, low, mark, mark_end, base = -LAP * 8, 0, 0, 0, -LAP * 8, 0
local given, holes = '', ''
local opened = false

local function open()
  if opened then return end
  opened = true
  if rest ~= '' then
    local bytes
    floor, last_step, low, mark, mark_end, base, bytes = struct.unpack(REST, rest)
    given = string.sub(rest, REST_BYTES + 1, REST_BYTES + bytes)
    holes = string.sub(rest, REST_BYTES + bytes + 1)
  elseif den > 0 then
    -- It was full before, and minted what overflowed.
    last_step = math.floor(num / den)
  end
end

-- What was minted one microsecond ago, rounded up.
local function passed()
  if now <= start then return origin - last_step end
  local whole, left = minted(now - 1)
  return left > 0 and whole + 1 or whole
end

-- The first position that has not overflowed.
local function alive_from()
  return math.max(passed() - cap, floor)
end

local function hole(index)
  return struct.unpack('<dd', holes, index * 16 - 15)
end

-- The first hole that ends beyond a position.
local function first_beyond(position)
  local low_index, high = 1, #holes / 16 + 1
  while low_index < high do
    local middle = math.floor((low_index + high) / 2)
    local _, hole_end = hole(middle)
    if hole_end > position then high = middle else low_index = middle + 1 end
  end
  return low_index
end

-- Puts all positions a lap back, so that they stay below 2^53.
local function turn()
  open()
  if den > 0 then
    local elapsed = now > start and now - start or 0
    elapsed = elapsed - elapsed % den
    start, origin = start + elapsed, origin + elapsed / den * num
  end
  epoch, origin, spent, line = epoch + 1, origin - LAP, spent - LAP, line - LAP
  floor, mark_end = math.max(floor - LAP, -LAP * 8), math.max(mark_end - LAP, -LAP * 8)
  local turned = {}
  for index = 1, #holes / 16 do
    local from, to = hole(index)
    turned[index] = struct.pack('<dd', from - LAP, to - LAP)
  end
  holes = table.concat(turned)
end

-- Before anything is changed: a full bucket starts anew, and what else there is stays below 2^53.
local function renew()
  if full then
    epoch, start, origin, spent, rest = math.max(now, epoch + 8), now, 0, -cap, ''
    line, part, full = 0, 0, false
  end
  open()
  while line > LAP * 2 and line < math.huge do turn() end
end

local function save()
  if opened then
    rest = struct.pack(REST, floor, last_step, low, mark, mark_end, base, #given) .. given .. holes
  end
  local value = struct.pack(STATE, version, token, num, den, cap, epoch, start, origin, spent, seq) .. rest
  -- What was set stays, and what never refills.
  if version > 0 or num == 0 or den == 0 then
    redis.call('SET', KEYS[1], value)
  else
    local refill = math.ceil((spent + cap - line) * den / num / 1000)
    redis.call('SET', KEYS[1], value, 'PX', math.min(math.max(refill, keep, 1), 1e15))
  end
end

-- What has become of a request, and positions that go with it.
local function answer(status, id, positions)
  local packed = {}
  for index, position in ipairs(positions or {}) do packed[index] = struct.pack('<d', position) end
  return struct.pack('<ddd', status, id, #packed) .. table.concat(packed)
end

local function reply(all)
  local head = struct.pack('<ddddd', differs, now, epoch, start, origin)
  if differs == 1 then head = head .. struct.pack('<ddddd', version, token, num, den, cap) end
  return head .. all
end

local function set(new_version, new_num, new_den, new_cap)
  renew()
  if new_cap ~= cap and den ~= 0 then
    -- A larger bucket revives nothing that has overflowed.
    local filled = (den > num and part > num) and line + 1 or line
    floor = math.max(floor, filled - cap)
    spent = math.max(spent, floor)
  end
  if den == 0 and new_den ~= 0 then
    -- Full, as without a limit.
    origin, last_step = math.max(origin, spent + cap), 0
    start = math.max(start, now)
  elseif new_num ~= num or new_den ~= den then
    if now > start then last_step = math.max(line - passed(), 0) end
    origin, start = line, math.max(start, now)
  end
  version, num, den, cap = new_version, new_num, new_den, new_cap
  line, part = minted(now)
end

if newer then
  set(newer[1], newer[2], newer[3], newer[4])
  differs = 0
end

-- The earliest free pieces to make up `need` that span at most a burst: holes first, then the end
-- of the line from `from` on. `take` takes them out of the holes.
local function run(need, from)
  local alive = alive_from()
  local first, count = first_beyond(alive), #holes / 16
  local froms, tos, head, tail, gathered = {}, {}, 1, 0, 0
  for index = first, count + 1 do
    local first_free, to = from, from + need
    if index <= count then
      first_free, to = hole(index)
      first_free = math.max(first_free, alive)
    end
    tail = tail + 1
    froms[tail], tos[tail] = first_free, to
    gathered = gathered + to - first_free
    while gathered >= need do
      local finish = to - (gathered - need)
      if finish - froms[head] <= cap then
        tos[tail] = finish
        local function take()
          local left = string.sub(holes, first * 16 - 15, (first + head - 2) * 16)
          if index <= count then
            if finish < to then left = left .. struct.pack('<dd', finish, to) end
            left = left .. string.sub(holes, index * 16 + 1)
          else
            spent = finish
          end
          holes = left
        end
        local pieces = {}
        for piece = head, tail do
          pieces[#pieces + 1] = froms[piece]
          pieces[#pieces + 1] = tos[piece]
        end
        return finish, take, pieces
      end
      gathered = gathered - (tos[head] - froms[head])
      head = head + 1
    end
  end
end

local function book(n, wait)
  local need = n * token
  if n == 0 or den == 0 then return answer(NOTHING, 0) end
  if need > cap then return answer(EXCEEDS_BURST, 0) end
  renew()
  -- Where a grain takes longer than a microsecond, one that is begun counts where it overflows.
  local filled = (den > num and part > 0) and line + 1 or line
  local reach = spent + cap <= line and filled or line
  local from = math.max(spent, filled - cap)
  local finish, take, pieces = from + need, nil, nil
  if finish > reach and holes ~= '' then finish, take, pieces = run(need, from) end
  if finish > reach then
    if wait >= 0 and finish > minted(now + wait) then return answer(LATE, 0, { finish }) end
    if finish - (line - cap) >= LAP * 4 then return answer(NO_ROOM, 0) end
  end
  seq, booked = seq + 1, true
  local status = finish <= reach and NOW or LATER
  if take then
    take()
    return answer(status, seq, pieces)
  end
  spent = finish
  return answer(status, seq, { from, finish })
end

if op == BOOK then
  while at < #asked do
    local n, wait = struct.unpack('<dd', asked, at)
    answers = (answers or '') .. book(n, wait)
    at = at + 16
  end
  if booked then save() end
  return reply(answers)
end

-- Whether a booking was given back, or is too long ago to know.
local function was_given_back(id)
  if id <= low then return true end
  local bit = id - base
  if bit < 0 then return (#given > 0) and (#given * 8 - bit > MOST_BITS) end
  local byte = string.byte(given, math.floor(bit / 8) + 1)
  return byte ~= nil and math.floor(byte / 2 ^ (bit % 8)) % 2 == 1
end

local function remember(id)
  if given == '' then base = id - id % 8 end
  if id < base then
    local more = math.ceil((base - id) / 8)
    given, base = string.rep('\0', more) .. given, base - more * 8
  end
  local bit = id - base
  local index = math.floor(bit / 8) + 1
  if index > #given then given = given .. string.rep('\0', index - #given) end
  local byte = string.byte(given, index) + 2 ^ (bit % 8)
  given = string.sub(given, 1, index - 1) .. string.char(byte) .. string.sub(given, index + 1)
  -- Not more than there is room for: what is older is refused.
  local excess = #given - MOST_BITS / 8
  if excess > 0 then
    given, base = string.sub(given, excess + 1), base + excess * 8
    low = math.max(low, base - 1)
  end
end

-- Forgets what has overflowed since.
local function forget(alive)
  holes = string.sub(holes, first_beyond(alive) * 16 - 15)
  if mark_end <= alive then
    low = math.max(low, mark)
    local gone = math.floor((low + 1 - base) / 8)
    if gone > 0 then given, base = string.sub(given, gone + 1), base + gone * 8 end
    mark, mark_end = seq, spent
  end
end

local function give_back_piece(from, to, alive)
  if to == spent then
    spent = math.max(from, floor)
    while holes ~= '' do
      local last_from, last_to = hole(#holes / 16)
      if last_to ~= spent then return end
      holes = string.sub(holes, 1, -17)
      if math.max(last_from, alive) >= spent then return end
      spent = math.max(last_from, alive)
    end
  elseif to > alive and to < spent then
    local index = first_beyond(from)
    local free = index > #holes / 16 or hole(index) >= to
    if free then
      holes = string.sub(holes, 1, index * 16 - 16) .. struct.pack('<dd', from, to) .. string.sub(holes, index * 16 - 15)
    end
  end
end

if op == GIVE_BACK then
  local booked_at, their_epoch = a, b
  local id, refund, finish = struct.unpack('<ddd', asked, 81)
  if not full then renew() end
  local laps = epoch - their_epoch
  if laps < 0 or laps > 6 or id > seq or full then return reply(answer(REFUSED, 0)) end
  if was_given_back(id) then return reply(answer(REFUSED, 0)) end
  if refund == 0 and now > booked_at then
    local before = now > start and minted(now - 1) or origin - last_step
    if before >= finish - laps * LAP then return reply(answer(REFUSED, 0)) end
  end
  local alive = alive_from()
  forget(alive)
  remember(id)
  for at = #asked - 15, 105, -16 do
    local from, to = struct.unpack('<dd', asked, at)
    give_back_piece(from - laps * LAP, to - laps * LAP, alive)
  end
  save()
  return reply(answer(DONE, 0))
end

-- What is below zero stays as it is.
if op == SET then
  local new_num, new_den, new_cap = a, b, struct.unpack('<d', asked, 81)
  -- In the grains of another token: who asks is told, and asks again.
  if struct.unpack('<d', asked, 33) ~= token then return reply(answer(REFUSED, 0)) end
  if new_num < 0 then new_num, new_den = num, den end
  if new_cap < 0 then new_cap = cap end
  if new_num ~= num or new_den ~= den or new_cap ~= cap then
    set(version + 1, new_num, new_den, new_cap)
    differs = 1
    save()
  end
  return reply(answer(DONE, 0))
end

-- The free grains: negative while more is booked than is minted.
open()
local free = cap
if den ~= 0 then
  free = line - spent
  local alive = alive_from()
  for index = first_beyond(alive), #holes / 16 do
    local from, to = hole(index)
    free = free + to - math.max(from, alive)
  end
end
return reply(answer(DONE, 0, { math.min(free, cap) }))
