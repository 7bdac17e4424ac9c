// Builds the page: a folder of static files, which a browser can also open from a disk.
// usage: node build.mjs CORE FOLDER
//
// A page from a disk may load scripts, but no other files. So the modules of WebAssembly are scripts, packed and in pieces
// that the browser parses in no time.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { recipes } from "./recipes.mjs";
import { HEADER } from "./src/core.js";

const [, , core, folder] = process.argv;
const PIECE = 1 << 20;

/** The module `recipes.js`. */
const cookbook = {
  name: "cookbook",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/recipes\.js$/ }, () => ({ path: "recipes", namespace: "cookbook" }));
    onLoad({ filter: /./, namespace: "cookbook" }, () => ({ contents: JSON.stringify(recipes("../docs/cookbook.md")), loader: "json" }));
  },
};

/** The folders of the packages that the page contains. */
const packages = new Set();

/** The bundle of a script or of styles. */
async function bundle(entry) {
  const { outputFiles, metafile } = await build({
    entryPoints: [`src/${entry}`], plugins: [cookbook], bundle: true, minify: true, write: false, metafile: true, format: "iife", target: "es2022", legalComments: "eof", charset: "utf8",
    alias: { "@duckdb/duckdb-wasm/blocking": "./node_modules/@duckdb/duckdb-wasm/dist/duckdb-browser-blocking.mjs" },
  });
  for (const path of Object.keys(metafile.inputs)) {
    const [folder] = path.match(/.*node_modules\/(?:@[^/]+\/)?[^/]+/) ?? [];
    if (folder) packages.add(folder);
  }
  return outputFiles[0].text;
}

rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const scripts = [];
const write = (name, text) => {
  writeFileSync(`${folder}/${name}`, text);
  scripts.push(name);
};
write("assets.js", readFileSync("src/assets.js"));
// A log with the chunks of several: what the page decodes before there are others.
const sample = ["Security", "Sysmon", "System"].map((log, index) => readFileSync(`../samples/DC01-${log}.evtx`).subarray(index ? HEADER : 0));
const assets = { core: readFileSync(core), duckdb: readFileSync("node_modules/@duckdb/duckdb-wasm/dist/duckdb-eh.wasm"), sample: Buffer.concat(sample) };
for (const [name, bytes] of Object.entries(assets)) {
  const text = gzipSync(bytes, { level: 9 }).toString("base64");
  for (let at = 0; at < text.length; at += PIECE) {
    write(`${name}-${at / PIECE}.js`, `evtxAssets.add(${JSON.stringify(name)}, "${text.slice(at, at + PIECE)}");\n`);
  }
}
for (const name of ["core-worker", "db-worker"]) {
  write(`${name}.js`, `evtxAssets.add(${JSON.stringify(name)}, ${JSON.stringify(await bundle(`${name}.js`))});\n`);
}
write("page.js", await bundle("page.js"));
writeFileSync(`${folder}/page.css`, await bundle("page.css"));
const tag = (name) => `<script src="${name}" defer></script>`;
writeFileSync(`${folder}/index.html`, readFileSync("src/page.html", "utf8").replace(tag("page.js"), () => scripts.map(tag).join("\n")));

/** The licence of a package. */
function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`));
  const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
  return `${"-".repeat(80)}\n${name} ${version} (${license})\n${"-".repeat(80)}\n\n${file ? readFileSync(`${folder}/${file}`, "utf8") : ""}\n`;
}
writeFileSync(`${folder}/LICENCES.txt`, readFileSync("../LICENSE", "utf8") + [...packages].sort().map(licence).join("") + readFileSync("../THIRD-PARTY-NOTICES.txt", "utf8"));
