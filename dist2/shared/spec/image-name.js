// How images are named: `[HOST[:PORT]/]PATH[:TAG][@DIGEST]`, as Docker reads it. A name becomes part of a request to the
// engine: whatever has another form is refused before.
const HOST_PART = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const HOST = `(?:${HOST_PART}(?:\\.${HOST_PART})*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?`;
const PATH_PART = '[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*';
const TAG = '[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}';
const DIGEST = '[a-z][a-z0-9]*(?:[+._-][a-z][a-z0-9]*)*:[0-9a-fA-F]{32,128}';
const IMAGE = new RegExp(`^(?:${HOST}/)?${PATH_PART}(?:/${PATH_PART})*(?::${TAG})?(?:@${DIGEST})?$`);
/** A name has 255 characters, a tag 128, a digest some more. */
const MAX_LENGTH = 512;
export function isImageName(text) {
    return text.length <= MAX_LENGTH && IMAGE.test(text);
}
