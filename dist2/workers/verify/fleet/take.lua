-- Takes what is to be asked now.
-- ARGV  1 options (JSON)
here()
return reply()
