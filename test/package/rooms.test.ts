import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** The layers of src/core as docs/architecture.md draws them, the lowest first. Each imports only from the layers before it. */
const rooms = drawnRooms(readFileSync(join(root, 'docs/architecture.md'), 'utf8'))
const sources = ['guards', 'machines', 'spec', 'src'].flatMap(filesIn)
const imports = new Map(sources.map((file) => [file, importsOf(file)]))
const arrows = [...imports].flatMap(([from, all]) => all.map((to) => ({ from, to })))

function drawnRooms(markdown: string): string[] {
  const [, drawn = ''] = /^## The rooms of core$[^]*?```text\n([^]*?)```/m.exec(markdown) ?? []
  return Array.from(drawn.matchAll(/^[\w-]+/gm), ([room]) => room)
}

function filesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => posix.join(folder, name.replaceAll('\\', '/')))
}

/** A file's internal imports, including types and lazy imports. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(root, file), 'utf8')
  const found = text.matchAll(
    /^(?:import |(?:import|export)\b[^'"]*?from )'(\.[^']+)'|\bimport\('(\.[^']+)'\)/gm,
  )
  return [...found].map(([, now, later]) => {
    const path = posix.join(posix.dirname(file), now ?? later ?? '').replace(/\.js$/, '.ts')
    return existsSync(join(root, path)) ? path : path.replace(/\.ts$/, '.tsx')
  })
}

/** `guards`, `machines`, `core/live`, `cli`, or `index.ts`. */
function roomOf(file: string): string {
  const [first = '', second = '', third = ''] = file.split('/')
  if (first !== 'src') return first
  return second === 'core' ? `core/${third}` : second
}

const describeImport = ({ from, to }: { from: string; to: string }) => `${from} imports ${to}`
const rank = (room: string) => rooms.indexOf(room.replace('core/', ''))

it('every internal import leads to a file', () => {
  expect(arrows.length).toBeGreaterThan(1000)
  expect(arrows.filter(({ to }) => !imports.has(to)).map(describeImport)).toEqual([])
})

it('guards import none of our files, and machines import only guards', () => {
  const allowed: Record<string, string[]> = {
    guards: ['guards'],
    machines: ['guards', 'machines'],
    spec: ['spec'],
  }
  const wrong = arrows.filter(({ from, to }) => allowed[roomOf(from)]?.includes(roomOf(to)) === false)
  expect(wrong.map(describeImport)).toEqual([])
})

it('guards import no machine and no package', () => {
  const packages = sources
    .filter((file) => roomOf(file) === 'guards')
    .flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(/from '([^.'][^']*)'/g)])
    .map(([, name]) => name)
  expect(packages).toEqual([])
})

it('every folder of src/core has its layer', () => {
  const found = new Set(sources.map(roomOf).filter((room) => room.startsWith('core/')))
  expect([...found].toSorted()).toEqual(rooms.map((room) => `core/${room}`).toSorted())
})

it('folders of src/core import only from lower layers', () => {
  const wrong = arrows.filter(({ from, to }) => {
    const [a, b] = [roomOf(from), roomOf(to)]
    if (!a.startsWith('core/') || ['guards', 'machines'].includes(b)) return false
    return !b.startsWith('core/') || rank(b) > rank(a)
  })
  expect(wrong.map(describeImport)).toEqual([])
})

it('an entry point imports src/core; views, the studio and the command line may import other entry points, too', () => {
  const entries = new Set(
    sources.map(roomOf).filter((room) => !/^(core\/.*|guards|machines|spec)$/.test(room)),
  )
  // The shared code of the page chats is not an entry point.
  const shows: Record<string, string[]> = {
    studio: ['diagram', 'fleet'],
    cli: [...entries],
    ui: ['web'],
    mcp: ['web'],
    agui: ['web'],
  }
  // The reference model judges the machine from outside. Only tests and the command line import it.
  const judges = arrows.filter(({ to }) => roomOf(to) === 'spec').map(({ from }) => roomOf(from))
  expect(new Set(judges)).toEqual(new Set(['spec', 'testing']))
  const wrong = arrows.filter(({ from, to }) => {
    const [a, b] = [roomOf(from), roomOf(to)]
    return entries.has(a) && entries.has(b) && a !== b && !shows[a]?.includes(b)
  })
  expect(wrong.map(describeImport)).toEqual([])
})

it('no file imports itself indirectly, including types', () => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, path: string[]): void => {
    const at = path.indexOf(file)
    if (at >= 0) circles.push([...path.slice(at), file].join(' → '))
    if (at >= 0 || done.has(file)) return
    for (const next of imports.get(file) ?? []) visit(next, [...path, file])
    done.add(file)
  }
  for (const file of sources) visit(file, [])
  expect(circles).toEqual([])
})
