-- Takes what is to be asked now.
-- ARGV  1 options (JSON)
-- Gives what every script here answers (calls.lua), and nothing else.
here()
return reply()
