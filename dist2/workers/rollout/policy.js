// A policy acts: it gets the observation and gives the next action, or says that it has none left.
export {};
