-- Which server has the run's keys now: of a cluster, one of several.
return server_id()
