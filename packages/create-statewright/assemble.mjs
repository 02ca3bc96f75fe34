// Assembles the templates in dist/templates from their own files and from parts of the repository's examples. The templates install
// the current version of statewright.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { templates } from './src/templates.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

const { version } = JSON.parse(readFileSync(here('../../package.json'), 'utf8'))

rmSync(here('dist'), { recursive: true, force: true })
for (const [name, { parts }] of Object.entries(templates)) {
  cpSync(here(`templates/${name}`), here(`dist/templates/${name}`), { recursive: true })
  for (const [from, to] of parts)
    cpSync(here(`../../${from}`), here(`dist/templates/${name}/${to}`), { recursive: true })
  setVersion(here(`dist/templates/${name}/package.json`))
}

function setVersion(file) {
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  manifest.dependencies.statewright = `^${version}`
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
