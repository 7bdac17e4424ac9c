// Whether a file was dropped before.

/** How many bytes of each file are compared at once. */
const PIECE = 1 << 22;

const isEqual = (a, b) => {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
};

/** Whether two files have the same time and the same bytes. Two copies of one log can differ in a single chunk. */
export async function isSame(a, b) {
  if (a.size !== b.size || a.lastModified !== b.lastModified) return false;
  for (let at = 0; at < a.size; at += PIECE) {
    const pieces = [a, b].map((file) => file.slice(at, at + PIECE).arrayBuffer());
    // A file that cannot be read is read again, which reports the error.
    const [one, other] = await Promise.all(pieces).catch(() => [null, null]);
    if (!one || !isEqual(new Uint8Array(one), new Uint8Array(other))) return false;
  }
  return true;
}
