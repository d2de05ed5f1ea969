-- Which server has the run's keys now: of a cluster, one of several.
-- ARGV  none
-- Gives its id.
return server_id()
