// The code size of each entry point, as a line of docs/README.md.
import { gzipSync } from 'node:zlib'
import { relative } from 'node:path'
import { build } from 'esbuild'

const [begin, end] = ['<!-- bench:sizes -->\n', '<!-- /bench:sizes -->\n']

/** Entry sizes in kB: minified and gzipped static imports, without packages. */
export async function measureEntries(root, entries) {
  const { outputFiles, metafile } = await build({
    entryPoints: entries.map(({ types }) => types.replace(/\.d\.ts$/, '.js')),
    absWorkingDir: root,
    outbase: 'dist',
    outdir: 'sizes',
    bundle: true,
    write: false,
    minify: true,
    splitting: true,
    metafile: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    logLevel: 'silent',
  })
  const texts = new Map(
    outputFiles.map(({ path, text }) => [relative(root, path).replaceAll('\\', '/'), text]),
  )
  return entries.map(({ name, types }) => {
    const first = types.replace(/^\.\/dist/, 'sizes').replace(/\.d\.ts$/, '.js')
    const code = [...listLoaded(first, metafile.outputs)].map((path) => texts.get(path)).join('\n')
    return { name, kB: Math.ceil(gzipSync(code).length / 1000) }
  })
}

/** The files loaded before a file's first line runs. */
function listLoaded(file, outputs) {
  const loaded = new Set([file])
  for (const path of loaded) {
    for (const { path: next, kind, external } of outputs[path].imports)
      if (kind === 'import-statement' && !external) loaded.add(next)
  }
  return loaded
}

export function formatSizes(sizes) {
  return `${sizes.map(({ name, kB }) => `\`${name}\` ${kB} kB`).join(' · ')}\n`
}

/** Parses the sizes of a `formatSizes` line. */
export function parseSizes(line) {
  return Array.from(line.matchAll(/`([^`]+)` (\d+) kB/g), ([, name, kB]) => ({ name, kB: Number(kB) }))
}

/** The line in the document, and the text around it. */
export function findSizes(text) {
  const [before, rest] = text.split(begin)
  const [line, after] = rest?.split(end) ?? []
  if (after === undefined)
    throw new Error(`docs/README.md has no lines "${begin.trim()}" and "${end.trim()}".`)
  return { before: before + begin, line, after: end + after }
}

/** One kB covers rounding and differences of zlib between Node versions. */
export function isStale(line, sizes) {
  const recordedSizes = new Map(parseSizes(line).map(({ name, kB }) => [name, kB]))
  return (
    recordedSizes.size !== sizes.length ||
    sizes.some(({ name, kB }) => !(Math.abs(recordedSizes.get(name) - kB) <= 1))
  )
}
