// Puts the templates together in dist/templates: their own files, and the parts that they take from the repository's examples.
import { cpSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { templates } from './src/templates.mjs'

const here = (path) => fileURLToPath(new URL(path, import.meta.url))

rmSync(here('dist'), { recursive: true, force: true })
for (const [name, { parts }] of Object.entries(templates)) {
  cpSync(here(`templates/${name}`), here(`dist/templates/${name}`), { recursive: true })
  for (const [from, to] of parts)
    cpSync(here(`../../${from}`), here(`dist/templates/${name}/${to}`), { recursive: true })
}
