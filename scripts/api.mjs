// Records the public types of each entry point in api/ and the entry sizes in docs. With --check it writes nothing
// and fails on differences. Reads the build.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listChangedBlocks } from './api-changes.mjs'
import { listEntries, writeReports } from './api-report.mjs'
import { findSizes, formatSizes, isStale, measureEntries } from './entry-sizes.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const check = process.argv.includes('--check')
const entries = listEntries(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')))

const folder = join(root, 'api')
mkdirSync(folder, { recursive: true })
const fileOf = (name) => `${name.replaceAll('/', '.')}.md`
const reports = new Map([...writeReports(root, entries)].map(([name, text]) => [fileOf(name), text]))
const recorded = new Map(readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')]))

const changes = []
for (const file of new Set([...recorded.keys(), ...reports.keys()])) {
  const before = recorded.get(file)
  const after = reports.get(file)
  if (before === after) continue
  changes.push(`api/${file}: ${listChangedBlocks(before, after).join(', ')}`)
  if (check) continue
  if (after === undefined) rmSync(join(folder, file))
  else writeFileSync(join(folder, file), after)
}

const readme = join(root, 'docs/README.md')
const text = readFileSync(readme, 'utf8')
const sizes = await measureEntries(root, entries)
const { before, line, after } = findSizes(text)
const stale = isStale(line, sizes)
if (stale && !check) writeFileSync(readme, `${before}${formatSizes(sizes)}${after}`)

if (changes.length > 0) console[check ? 'error' : 'log'](`Public types:\n  ${changes.join('\n  ')}`)
if (stale) console[check ? 'error' : 'log']('The sizes in docs/README.md differ from the measured ones.')
if (check && (changes.length > 0 || stale)) {
  console.error(
    'To accept it, run `npm run api`, and commit api/ and docs/README.md together with the code. ' +
      'If users see the change, add a line to CHANGELOG.md in the same commit (docs/versioning.md says what may change).',
  )
  process.exitCode = 1
} else if (changes.length === 0 && !stale) console.log('The public types and the sizes are on record.')
