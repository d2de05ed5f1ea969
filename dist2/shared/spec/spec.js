// The run spec as resolved: every default filled in, every path absolute, nothing left to interpret.
// `spec-reader` makes it from a file and reports every problem at once; the manifest keeps `document`.
/** `fresh`: a box for each episode. `recycled`: boxes that the run's episodes have in turn, reset between them. */
export const ISOLATIONS = ['fresh', 'recycled'];
