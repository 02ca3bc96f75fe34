import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { longTest } from '../support/extent.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const files = [
  'package.json',
  'package-lock.json',
  'packages/create-statewright/package.json',
  'packages/create-statewright/package-lock.json',
  'packages/agent-loop-conformance/package.json',
]
const repository = 'https://git.example/statewright.git'
const changelog = '# Changelog\n\n## Unreleased\n\n- Runs sleep.\n\n## 0.1.0\n\n- The loop.\n'
const folders: string[] = []
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })))

function start(command: string, args: string[], cwd: string) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** A repository with the files that a release changes. It has no packages to install, so that it stays small. */
function createRepository() {
  const folder = mkdtempSync(join(tmpdir(), 'statewright-release-'))
  folders.push(folder)
  for (const name of ['create-statewright', 'agent-loop-conformance'])
    mkdirSync(join(folder, 'packages', name), { recursive: true })
  const own = { name: 'statewright', version: '0.1.0' }
  const places = { repository, homepage: 'https://site.example', bugs: 'https://bugs.example' }
  for (const file of files) {
    const lock = { ...own, lockfileVersion: 3, requires: true, packages: { '': own } }
    const manifest = file === 'package.json' ? { ...own, ...places } : own
    writeFileSync(
      join(folder, file),
      `${JSON.stringify(file.endsWith('lock.json') ? lock : manifest, null, 2)}\n`,
    )
  }
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  writeFileSync(join(folder, '.gitignore'), '*.cdx.json\n')
  const git = (...args: string[]) => start('git', args, folder).stdout.trim()
  git('init', '--quiet', '--initial-branch', 'main')
  git('config', 'user.name', 'A developer')
  git('config', 'user.email', 'developer@example.com')
  git('add', '.')
  git('commit', '--quiet', '-m', 'Begin')
  return {
    git,
    read: (file: string) => readFileSync(join(folder, file), 'utf8'),
    write: (file: string, text: string) => writeFileSync(join(folder, file), text),
    release: (...args: string[]) =>
      start(process.execPath, [join(root, 'scripts/release.mjs'), ...args], folder),
  }
}

test('the packages have one version', () => {
  const versions = files.flatMap((file) => {
    const { version, packages } = JSON.parse(readFileSync(root + file, 'utf8')) as {
      version: string
      packages?: Record<string, { version: string }>
    }
    return [version, packages?.['']?.version ?? version]
  })
  expect(new Set(versions).size).toBe(1)
})

test('a release cuts the changelog, sets the version, commits and tags; a dry run writes nothing', () => {
  const { git, read, release } = createRepository()
  const before = git('rev-parse', 'HEAD')

  const dry = release('0.2.0', '--dry-run')
  expect(dry).toMatchObject({ status: 0, stderr: '' })
  expect(dry.stdout).toContain('Would have committed and tagged: v0.2.0')
  const untouched = [git('rev-parse', 'HEAD'), git('status', '--porcelain', '--ignored'), git('tag')]
  expect(untouched).toEqual([before, '', ''])

  const { status, stdout } = release('0.2.0')
  expect(status).toBe(0)
  expect(stdout).toContain('npm publish --provenance\n')
  expect(stdout).toContain('npm publish --provenance ./packages/create-statewright')
  const day = /## 0\.2\.0 – (\d{4}-\d\d-\d\d)\n/.exec(read('CHANGELOG.md'))?.[1]
  expect(read('CHANGELOG.md')).toBe(
    changelog.replace('## Unreleased\n', `## Unreleased\n\n## 0.2.0 – ${day}\n`),
  )
  for (const file of files) expect(read(file)).not.toContain('0.1.0')
  expect(git('status', '--porcelain')).toBe('')
  expect(git('rev-parse', 'v0.2.0^{commit}')).toBe(git('rev-parse', 'HEAD'))
  const bill: unknown = JSON.parse(read('statewright-0.2.0.cdx.json'))
  expect(bill).toMatchObject({ bomFormat: 'CycloneDX', components: [] })
})

test('a section of the version gets its date', () => {
  const { git, read, write, release } = createRepository()
  write('CHANGELOG.md', changelog.replace('Unreleased', '0.2.0'))
  git('commit', '--quiet', '--all', '-m', 'Name the next version')
  expect(release('0.2.0').status).toBe(0)
  expect(read('CHANGELOG.md')).toMatch(
    /^# Changelog\n\n## Unreleased\n\n## 0\.2\.0 – \d{4}-\d\d-\d\d\n\n- Runs sleep\.\n/,
  )
})

longTest('the repository is only in the root, and a release copies it to the other packages', () => {
  const { read, release } = createRepository()
  expect(release('0.2.0').status).toBe(0)
  expect(JSON.parse(read('packages/create-statewright/package.json'))).toEqual({
    name: 'statewright',
    version: '0.2.0',
    repository: { type: 'git', url: repository, directory: 'packages/create-statewright' },
  })
})

test('a release needs the addresses that npm links to', () => {
  const { git, write, release } = createRepository()
  write('package.json', '{ "name": "statewright", "version": "0.1.0" }\n')
  git('commit', '--quiet', '--all', '-m', 'Forget where it is')
  const { status, stderr } = release('0.2.0')
  expect(status).toBe(1)
  for (const key of ['repository', 'homepage', 'bugs'])
    expect(stderr).toContain(`package.json has no "${key}"`)
})

test('the starters install the current version', () => {
  const { status } = start(process.execPath, ['packages/create-statewright/assemble.mjs'], root)
  expect(status).toBe(0)
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }
  const ranges = ['agent', 'chat', 'service'].map((name) => {
    const file = join(root, `packages/create-statewright/dist/templates/${name}/package.json`)
    return (JSON.parse(readFileSync(file, 'utf8')) as { dependencies: Record<string, string> }).dependencies
      .statewright
  })
  expect(ranges).toEqual([`^${version}`, `^${version}`, `^${version}`])
})

test('it refuses, and lists every obstacle', () => {
  const { git, write, release } = createRepository()
  git('checkout', '--quiet', '-b', 'other')
  git('tag', 'v0.1.0')
  write('CHANGELOG.md', '# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- The loop.\n')
  const { status, stderr } = release('0.1.0')
  expect(status).toBe(1)
  for (const words of [
    'The branch is other: check out main.',
    'uncommitted changes: commit or stash them.\n M CHANGELOG.md',
    '0.1.0 is not greater than 0.1.0',
    'There is a tag v0.1.0 already.',
    'CHANGELOG.md has no entries below "## Unreleased".',
  ])
    expect(stderr).toContain(words)
})

test.each([[[]], [['1.2']], [['v1.2.3']], [['1.2.3', '1.2.4']], [['--dryrun', '1.2.3']]])(
  '%j is not a version',
  (args) => {
    const { status, stderr } = start(process.execPath, [join(root, 'scripts/release.mjs'), ...args], root)
    expect([status, stderr]).toEqual([2, expect.stringContaining('Give one version, such as 1.2.3.')])
  },
)

describe('the bill of materials', () => {
  type Select = (bill: object, lock: object) => { components: { name: string }[]; dependencies: object[] }
  const lock = {
    packages: {
      '': { name: 'statewright', version: '0.1.0', dependencies: { a: '1' }, peerDependencies: { p: '1' } },
      'node_modules/a': { version: '1.0.0', dependencies: { b: '2' }, peerDependencies: { p: '1' } },
      'node_modules/a/node_modules/b': { version: '2.0.0' },
      'node_modules/b': { version: '1.0.0', dev: true },
      // A production dependency that the lock file also lists for development.
      'node_modules/p': { version: '1.0.0', devOptional: true },
    },
  }
  const toComponent = (reference: string) => {
    const [name, version] = reference.split('@')
    return { 'bom-ref': reference, name, version }
  }
  const bill = (...references: string[]) => ({
    metadata: { component: { name: 'folder' } },
    components: references.map(toComponent),
    dependencies: [{ ref: 'statewright@0.1.0', dependsOn: references }],
  })
  const load = async () =>
    ((await import(`${root}scripts/sbom.mjs`)) as { selectInstalled: Select }).selectInstalled

  it('lists the packages that the lock installs for an app, without development packages', async () => {
    const select = await load()
    const { components, dependencies } = select(bill('a@1.0.0', 'b@1.0.0', 'b@2.0.0', 'p@1.0.0'), lock)
    expect(components).toMatchObject(['a@1.0.0', 'b@2.0.0', 'p@1.0.0'].map(toComponent))
    expect(dependencies).toEqual([{ ref: 'statewright@0.1.0', dependsOn: ['a@1.0.0', 'b@2.0.0', 'p@1.0.0'] }])
  })

  it('is refused if npm omits a package that the lock installs', async () => {
    const select = await load()
    expect(() => select(bill('a@1.0.0', 'b@1.0.0', 'p@1.0.0'), lock)).toThrow(
      'The bill of materials lacks what package-lock.json installs: b@2.0.0',
    )
  })
})
