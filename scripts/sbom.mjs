// The bill of materials of an install, according to the lock file. `npm sbom --omit dev` omits direct dependencies
// that development dependencies also need, so npm lists everything and the lock file selects.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The bill as CycloneDX. Throws if npm does not list a locked package. */
export function createSbom(folder) {
  const { status, stdout, stderr } = spawnSync(
    'npm',
    ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'],
    { cwd: folder, encoding: 'utf8', maxBuffer: 2 ** 28, shell: process.platform === 'win32' },
  )
  if (status !== 0) throw new Error(`npm sbom ended with ${status}:\n${stderr}`)
  return selectInstalled(
    JSON.parse(stdout),
    JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')),
  )
}

/** Selects the packages of an install. */
export function selectInstalled(bill, lock) {
  const wanted = listInstalled(lock)
  const components = bill.components.filter((each) => wanted.has(toReference(each)))
  const listed = new Set(components.map(toReference))
  const missing = [...wanted].filter((reference) => !listed.has(reference))
  if (missing.length > 0)
    throw new Error(`The bill of materials lacks what package-lock.json installs: ${missing.join(', ')}`)
  const { name, version } = lock.packages['']
  const self = `${name}@${version}`
  const isKept = (reference) => reference === self || wanted.has(reference)
  return {
    ...bill,
    metadata: { ...bill.metadata, component: { ...bill.metadata.component, name } },
    components: components.map((each) => ({
      ...each,
      // A mark that only the development tree has.
      properties: each.properties?.filter((property) => property.name !== 'cdx:npm:package:development'),
    })),
    dependencies: bill.dependencies
      .filter(({ ref }) => isKept(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter(isKept) })),
  }
}

const toReference = ({ name, version }) => `${name}@${version}`

/** The production packages of a lock file, as `name@version`. */
function listInstalled({ packages }) {
  const places = new Set([''])
  for (const place of places) {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = packages[place]
    // Apps install optional peers themselves.
    const peers = Object.keys((place === '' ? undefined : peerDependencies) ?? {})
    const names = [
      ...Object.keys({ ...dependencies, ...optionalDependencies }),
      ...peers.filter((name) => !peerDependenciesMeta?.[name]?.optional),
    ]
    for (const name of names) {
      const found = findPlace(packages, place, name)
      if (found !== undefined) places.add(found)
      else if (!optionalDependencies?.[name])
        throw new Error(`package-lock.json has no ${name}, which ${place} needs.`)
    }
  }
  places.delete('')
  return new Set([...places].map((place) => `${nameOf(packages, place)}@${packages[place].version}`))
}

/** Resolves a package like Node, from the innermost node_modules outwards. */
function findPlace(packages, from, name) {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const place = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`
    if (packages[place]) return place
    if (base === '') return undefined
  }
}

const nameOf = (packages, place) => packages[place].name ?? place.split('node_modules/').at(-1)
