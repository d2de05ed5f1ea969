// For what is true within a bound in ms that the farm's own clocks leave no room to widen: a machine that stands still can
// overrun it once, a fault does each time.

export const TIMED = { retry: 2 };
