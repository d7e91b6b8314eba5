// Bundles the page: `node build.mjs` writes static/, `node build.mjs --check` says whether static/ is what the sources give.
import { build } from "esbuild";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const staticFolder = join(here, "static");

async function bundled() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: { console: "src/main.tsx" },
    outdir: "static",
    bundle: true,
    minify: true,
    format: "esm",
    target: ["es2022"],
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "warning",
  });
  const files = new Map(result.outputFiles.map((file) => [file.path.split(/[\\/]/).pop(), Buffer.from(file.contents)]));
  files.set("index.html", readFileSync(join(here, "src/index.html")));
  files.set("LICENSES.txt", Buffer.from(licences(Object.keys(result.metafile.inputs))));
  return files;
}

// Every library in the bundle asks that its licence goes with it.
function licences(inputs) {
  const folders = inputs.map((input) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(Boolean);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    const file = readdirSync(join(here, folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no file with its licence`);
    return `${name} ${version}\n\n${readFileSync(join(here, folder, file), "utf8").trim()}\n`;
  });
  return texts.join("\n---\n\n");
}

const files = await bundled();
const stale = [...files].filter(([name, bytes]) => {
  const path = join(staticFolder, name);
  return !existsSync(path) || !readFileSync(path).equals(bytes);
});
if (process.argv.includes("--check")) {
  if (stale.length) {
    console.error(`backend/console/static is stale (${stale.map(([name]) => name).join(", ")}): run make console`);
    process.exit(1);
  }
} else {
  for (const [name, bytes] of stale) writeFileSync(join(staticFolder, name), bytes);
}
