-- Tell whether this user may wake others: ARGV[1] is a channel that nobody hears.
-- Returns OK, or the error that PUBLISH or PUBSUB gives.
for _, command in ipairs({{'PUBLISH', ARGV[1], ''}, {'PUBSUB', 'NUMSUB', ARGV[1]}}) do
    local reply = redis.pcall(unpack(command))
    if type(reply) == 'table' and reply.err then
        return reply
    end
end
return redis.status_reply('OK')
