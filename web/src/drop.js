// What people drop or choose, as a list of files with their paths.

/** Adds the files of a folder to `found`, as promises. One that cannot be read is kept without a file, so that it can be reported. */
async function walk(folder, path, found) {
  try {
    for await (const [name, handle] of folder.entries()) {
      const inside = `${path}/${name}`;
      if (handle.kind === "directory") await walk(handle, inside, found);
      else found.push(handle.getFile().then((file) => ({ path: inside, file }), (error) => ({ path: inside, error: error.message })));
    }
  } catch (error) {
    found.push({ path, error: error.message });
  }
}

/** The files of a folder, in browsers without handles. */
async function* walkEntry(folder) {
  const path = folder.fullPath.replace(/^\//, "");
  const reader = folder.createReader();
  const listed = () => new Promise((resolve, reject) => { reader.readEntries(resolve, reject); });
  try {
    // Browsers list up to 100 entries at once.
    for (let entries = await listed(); entries.length; entries = await listed()) {
      for (const entry of entries) {
        if (entry.isDirectory) yield* walkEntry(entry);
        else yield { path: `${path}/${entry.name}`, file: await new Promise((resolve, reject) => { entry.file(resolve, reject); }) };
      }
    }
  } catch (error) {
    yield { path, error: error.message };
  }
}

/** All files of a drop, with those of its folders, in the order of their paths: `{files, errors}`. */
export async function dropped(transfer) {
  // The items are gone after the first await. A page from the disk cannot read the files of entries.
  const items = [...transfer.items].filter(({ kind }) => kind === "file").map((item) =>
    ({ file: item.getAsFile(), entry: item.webkitGetAsEntry(), handle: item.getAsFileSystemHandle?.() }));
  const found = [];
  for (const { file, entry, handle } of items) {
    if (!entry?.isDirectory) {
      found.push({ path: file.name, file });
      continue;
    }
    const folder = await handle;
    if (folder) await walk(folder, folder.name, found);
    else for await (const each of walkEntry(entry)) found.push(each);
  }
  return sorted(await Promise.all(found));
}

/** The files that an input has. */
export const chosen = (input) => sorted([...input.files].map((file) => ({ path: file.webkitRelativePath || file.name, file })));

function sorted(found) {
  found.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
  return { files: found.filter(({ file }) => file), errors: found.filter(({ error }) => error) };
}
