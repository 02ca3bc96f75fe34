// Makes a release in the current folder: checks, cuts the changelog, sets versions, writes the bill of materials,
// commits and tags. Prints the commands that publish it.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createSbom } from './sbom.mjs'

const help = `Makes a release of statewright, create-statewright and agent-loop-conformance.

Usage: npm run release -- VERSION [--dry-run]

VERSION is greater than the one of package.json, as 1.2.3 (docs/versioning.md says which number grows). On main, with nothing uncommitted:
  CHANGELOG.md                     the section "Unreleased", or "VERSION", becomes the dated section of VERSION
  package.json, package-lock.json  have VERSION, in the root and in packages/*, and the root's "repository"
  statewright-VERSION.cdx.json     lists what an install brings (CycloneDX), and is not committed
Then it commits, tags vVERSION, and prints the commands that publish.

Options:
      --dry-run   checks everything, prints what would be done, and writes nothing
  -h, --help      show this help`

/** Files that contain the version, and how often. */
const versioned = {
  'package.json': 1,
  'package-lock.json': 2,
  'packages/create-statewright/package.json': 1,
  'packages/create-statewright/package-lock.json': 2,
  'packages/agent-loop-conformance/package.json': 1,
}

const args = process.argv.slice(2)
const dryRun = args.includes('--dry-run')
const rest = args.filter((each) => each !== '--dry-run')
if (args.includes('--help') || args.includes('-h')) {
  console.log(help)
  process.exit(0)
}
const [version = ''] = rest
if (rest.length !== 1 || !/^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}$/.test(version)) {
  console.error(`Give one version, such as 1.2.3. Got: ${rest.join(' ') || 'none'}\n\n${help}`)
  process.exit(2)
}

const changelog = readFileSync('CHANGELOG.md', 'utf8')
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const { version: current } = manifest
const tag = `v${version}`
/** The section of the release, before it has a date. */
const section = changelog.includes('\n## Unreleased\n') ? '## Unreleased' : `## ${version}`

const faults = findFaults()
if (faults.length > 0) {
  console.error(`No release ${version}:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
  process.exit(1)
}

const sbom = createSbom('.')
const sbomFile = `statewright-${version}.cdx.json`
const files = {
  'CHANGELOG.md': cutChangelog(),
  ...Object.fromEntries(Object.entries(versioned).map(([file, times]) => [file, setVersion(file, times)])),
}
for (const name of ['create-statewright', 'agent-loop-conformance']) copyRepository(`packages/${name}`)
if (!dryRun) {
  for (const [file, text] of Object.entries(files)) writeFileSync(file, text)
  writeFileSync(sbomFile, `${JSON.stringify(sbom, null, 2)}\n`)
  git('add', ...Object.keys(files))
  git('commit', '-m', `Release ${version}`)
  git('tag', '-a', tag, '-m', `Release ${version}`)
}

const would = dryRun ? 'Would have ' : ''
console.log(`${would}${dryRun ? 'written' : 'Written'}: ${[...Object.keys(files), sbomFile].join(', ')}`)
console.log(`${sbomFile} lists ${sbom.components.length} packages.`)
console.log(`${would}${dryRun ? 'committed and tagged' : 'Committed and tagged'}: ${tag}\n`)
console.log(`Publish, from the workflow of the tag or from a clean checkout of it:
  git push --follow-tags
  npm publish --provenance
  npm publish --provenance ./packages/create-statewright
  npm publish --provenance ./packages/agent-loop-conformance`)

function findFaults() {
  const found = []
  const branch = git('branch', '--show-current').trim()
  if (branch !== 'main') found.push(`The branch is ${branch || 'none'}: check out main.`)
  const dirty = git('status', '--porcelain').trimEnd()
  if (dirty !== '') found.push(`There are uncommitted changes: commit or stash them.\n${dirty}`)
  if (!isGreater(version, current)) found.push(`${version} is not greater than ${current} of package.json.`)
  if (git('tag', '--list', tag).trim() !== '') found.push(`There is a tag ${tag} already.`)
  for (const key of ['repository', 'homepage', 'bugs'])
    if (!manifest[key]) found.push(`package.json has no "${key}": add it, since npm links to it.`)
  if (!/^[-*] /m.test(readEntries())) found.push(`CHANGELOG.md has no entries below "${section}".`)
  return found
}

function git(...options) {
  const { status, stdout, stderr } = spawnSync('git', options, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${options.join(' ')} ended with ${status}:\n${stderr}`)
  return stdout
}

function isGreater(one, other) {
  const [left, right] = [one, other].map((each) => each.split('.').map(Number))
  const i = left.findIndex((number, at) => number !== right[at])
  return i !== -1 && left[i] > right[i]
}

function readEntries() {
  const [, after = ''] = changelog.split(`\n${section}\n`)
  return after.split(/^## /m)[0]
}

function cutChangelog() {
  const date = new Date().toISOString().slice(0, 10)
  return changelog.replace(`\n${section}\n`, `\n## Unreleased\n\n## ${version} – ${date}\n`)
}

/** npm reads the repository from each package, but only the root has it in git. */
function copyRepository(folder) {
  const { repository: root } = manifest
  const repository = {
    type: 'git',
    ...(typeof root === 'string' ? { url: root } : root),
    directory: folder,
  }
  const own = { ...JSON.parse(files[`${folder}/package.json`]), repository }
  files[`${folder}/package.json`] = `${JSON.stringify(own, null, 2)}\n`
}

/** The first occurrences are the package's own version. */
function setVersion(file, times) {
  let text = readFileSync(file, 'utf8')
  for (let i = 0; i < times; i++) text = text.replace(`"version": "${current}"`, `"version": "${version}"`)
  const { version: written, packages } = JSON.parse(text)
  const all = packages ? [written, packages[''].version] : [written]
  if (all.some((each) => each !== version))
    throw new Error(`${file} did not have the version ${current} of package.json: make them equal first.`)
  return text
}
