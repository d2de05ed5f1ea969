// A role of the farm as a process runs it: started once, drained when asked, stopped when that takes too long.
export {};
