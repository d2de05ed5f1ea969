// A fault: something that befalls the farm, and is mended.
export {};
