import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const home = join(process.cwd(), 'packages/create-statewright')
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
const { version } = readJson('package.json') as { version: string }

let folder: string
beforeAll(() => execFileSync(process.execPath, [join(home, 'assemble.mjs')]))
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'statewright-create-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function create(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(home, 'main.mjs'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    input: '',
  })
  return { status, stdout, stderr }
}

test('has the version of the package that its projects install', () => {
  expect(readJson(join(home, 'package.json'))['version']).toBe(version)
})

test.each(['agent', 'chat', 'service'])('--template %s writes a project without a question', (name) => {
  const { status, stdout } = create('My Äpp', '--template', name)
  expect(status).toBe(0)
  expect(stdout).toContain("\n  cd 'My Äpp'\n  npm install\n")
  expect(readJson(join(folder, 'My Äpp/package.json'))).toMatchObject({
    name: 'my-a-pp',
    dependencies: { statewright: `^${version}` },
  })
  expect(existsSync(join(folder, 'My Äpp/.gitignore'))).toBe(true)
  expect(existsSync(join(folder, 'My Äpp/_gitignore'))).toBe(false)
})

test('the page of the chat is that of the example', () => {
  create('.', '--template', 'chat')
  for (const [ours, example] of [
    ['page/conversation.tsx', 'src/conversation.tsx'],
    ['agent.mjs', 'agent.mjs'],
  ] as const)
    expect(readFileSync(join(folder, ours), 'utf8')).toBe(
      readFileSync(join('examples/chat-react', example), 'utf8'),
    )
})

test('a project does not have the name of a package that it installs', () => {
  create('statewright', '--template', 'agent')
  expect(readJson(join(folder, 'statewright/package.json'))['name']).toBe('statewright-app')
})

test('a folder that only contains a repository counts as empty', () => {
  mkdirSync(join(folder, '.git'))
  expect(create('.', '--template', 'agent').stdout).toContain('files are in this folder')
})

test.each([
  [['taken', '--template', 'agent'], "'taken' is not empty: it has mine.txt."],
  [['a-file', '--template', 'agent'], "'a-file' is a file."],
  [
    ['a-file/new', '--template', 'agent'],
    "ENOTDIR: not a directory, mkdir 'a-file/new'. Give another folder",
  ],
  [['', '--template', 'agent'], 'FOLDER is empty.'],
  [['node_modules', '--template', 'agent'], 'npm reserves the name node_modules.'],
  [['node_modules/new', '--template', 'agent'], 'npm reserves the name node_modules.'],
  [['new', '--template', 'agents'], "--template: there is no 'agents'. Choose one of agent, chat, service."],
  [['new', 'more', '--template', 'agent'], "Give only one FOLDER, and remove 'more'."],
  [['new', '--template', 'agent', '--package', ' '], '--package is empty.'],
  [['new', '--tempalte', 'agent'], '--tempalte'],
  [['new'], 'There is no terminal. Pass FOLDER and --template NAME.'],
])('%j is refused in one line, and nothing is written', (args, words) => {
  mkdirSync(join(folder, 'taken'))
  writeFileSync(join(folder, 'taken/mine.txt'), 'Mine.')
  writeFileSync(join(folder, 'a-file'), '')
  const { status, stdout, stderr } = create(...args)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toContain(words)
  expect(stderr).not.toContain('    at ')
  expect(existsSync(join(folder, 'new'))).toBe(false)
  expect(existsSync(join(folder, 'taken/package.json'))).toBe(false)
})

test('--help and --version work', () => {
  expect(create('--help').stdout).toContain('-- --template NAME')
  expect(create('--version').stdout).toBe(`${version}\n`)
})
