// Assembles the templates in dist/templates from their own files and from parts of the repository's examples. The templates install
// the current version of statewright.
import { cpSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { templates } from './src/templates.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

const { version } = JSON.parse(readFileSync(here('../../package.json'), 'utf8'))

// Two steps of CI assemble at once, so each writes a separate folder and replaces the target at the end.
const fresh = mkdtempSync(here('.assembled-'))
for (const [name, { parts }] of Object.entries(templates)) {
  const template = join(fresh, 'templates', name)
  cpSync(here(`templates/${name}`), template, { recursive: true })
  for (const [from, to] of parts) cpSync(here(`../../${from}`), join(template, to), { recursive: true })
  setVersion(join(template, 'package.json'))
}
rmSync(here('dist'), { recursive: true, force: true })
renameSync(fresh, here('dist'))

function setVersion(file) {
  const manifest = JSON.parse(readFileSync(file, 'utf8'))
  manifest.dependencies.statewright = `^${version}`
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`)
}
