-- Which server has the run's keys now: of a cluster, one of several.
-- ARGV  none
-- Gives its id: run_id and replid.
return server_id()
