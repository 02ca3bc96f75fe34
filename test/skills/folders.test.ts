import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import fc from 'fast-check'
import { type ConfigError, createAgent, type Tool } from '../../src/index.js'
import { createDefinitionFactory } from '../../src/core/agent/agent-internals.js'
import { readParts } from '../../src/core/agent/read-parts.js'
import { instructionsFrom, skills } from '../../src/skills/index.js'
import * as elsewhere from '../../src/skills/elsewhere.js'
import { ManualModel } from '../support/manual-model.js'
import { folderOf, removeFolders, skillFile } from './support.js'

afterAll(removeFolders)

const codeOf = (work: () => unknown): string => {
  try {
    work()
    return 'none'
  } catch (error) {
    return (error as ConfigError).code
  }
}
const find = (all: { tools: readonly Tool[] }, name: string) => {
  const tool = all.tools.find((one) => one.name === name)
  return (input: object): unknown => tool?.execute?.(input, {} as never)
}

test('front matter is parsed, and the body stays unchanged', async () => {
  const dir = folderOf({
    'a/SKILL.md':
      '\uFEFF---\r\nname: a\r\ndescription: >\r\n  What it\r\n  is for.\r\nlicense: MIT\r\nmetadata:\r\n  version: 2\r\n  by: us\r\nallowed-tools: read, write\r\nother: [1]\r\n---\r\n\r\n# A\r\n---\r\nrest\r\n',
    'no-skill/README.md': 'Nothing.',
    '.hidden/SKILL.md': 'Nothing.',
  })
  const all = skills({ dirs: [dir] })
  expect(all.list).toEqual([
    {
      name: 'a',
      description: 'What it is for.',
      license: 'MIT',
      metadata: { version: '2', by: 'us' },
      allowedTools: ['read', 'write'],
      hash: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    },
  ])
  expect(await find(all, 'load_skill')({ name: 'a' })).toMatchObject({
    text: expect.stringMatching(/^\r\n# A\r\n---\r\nrest\r\n\n\n\[While/) as string,
    change: { action: 'load', name: 'a', allowedTools: ['read', 'write'] },
  })
  expect(skills({ dirs: [join(dir, 'a')] }).list).toHaveLength(1)
  expect(skills({ dirs: [dir], allow: [] }).list).toEqual([])
  expect(skills({ dirs: [dir], allow: ({ license }) => license === 'MIT' }).list).toHaveLength(1)
})

test.each([
  ['no front matter', 'Do it.'],
  ['front matter without an end', '---\nname: a\ndescription: A.\n'],
  ['invalid YAML', '---\nname: [\n---\n'],
  ['a list', '---\n- a\n---\n'],
  [
    'an alias, which could expand a small text into a large one',
    '---\na: &a [x]\nname: a\ndescription: A.\nb: *a\n---\n',
  ],
  ['no name', '---\ndescription: A.\n---\n'],
  ['a name with a slash', '---\nname: a/b\ndescription: A.\n---\n'],
  ['a name that is too long', `---\nname: ${'a'.repeat(65)}\ndescription: A.\n---\n`],
  ['no description', '---\nname: a\n---\n'],
  ['a description that is too long', `---\nname: a\ndescription: ${'x'.repeat(1025)}\n---\n`],
  ['a pattern in allowed-tools', '---\nname: a\ndescription: A.\nallowed-tools: Bash(git:*)\n---\n'],
  ['an empty allowed-tools', '---\nname: a\ndescription: A.\nallowed-tools:\n---\n'],
  ['another spelling of allowed-tools', '---\nname: a\ndescription: A.\nallowed_tools: read\n---\n'],
  ['an allowedTools', '---\nname: a\ndescription: A.\nallowedTools: [read]\n---\n'],
  ['front matter of 10 MB', `---\nname: a\ndescription: A.\nmore: ${'x'.repeat(10_000_000)}\n---\n`],
  ['long front matter', `---\nname: a\ndescription: A.\nmore: ${'x'.repeat(30_000)}\n---\n`],
  ['a file that is not text', Buffer.from([0x2d, 0, 1])],
  [
    'a file that is not UTF-8',
    Buffer.concat([Buffer.from('---\nname: a\ndescription: '), Buffer.from([0xff, 0xfe])]),
  ],
])('%s is refused, and the file is named', (_, text) => {
  const dir = folderOf({ 'a/SKILL.md': text })
  expect(() => skills({ dirs: [dir] })).toThrow(
    expect.objectContaining({
      code: 'invalid_skill',
      message: expect.stringContaining('SKILL.md') as string,
    }) as Error,
  )
})

test('two skills of one name, a missing folder, and invalid options are refused', () => {
  const [one, two] = ['one', 'two'].map((name) => folderOf({ [`${name}/SKILL.md`]: skillFile('same') }))
  expect(codeOf(() => skills({ dirs: [one as string, two as string] }))).toBe('duplicate_skill')
  expect(codeOf(() => skills({ dirs: ['./there-is-none'] }))).toBe('invalid_skill')
  expect(codeOf(() => skills({ dirs: [join(one as string, 'one/SKILL.md')] }))).toBe('invalid_skill')
  expect(codeOf(() => skills({ dirs: './skills' } as never))).toBe('invalid_option')
  expect(codeOf(() => skills(null as never))).toBe('invalid_argument')
  expect(codeOf(() => skills({ dirs: [], folders: [] } as never))).toBe('invalid_option')
  expect(codeOf(() => skills({ dirs: [], allow: 1 } as never))).toBe('invalid_option')
  expect(codeOf(() => skills({ load: () => '' } as never))).toBe('invalid_option')
  expect(codeOf(() => createAgent({ model: new ManualModel(), skills: {} as never }))).toBe('invalid_config')
  const twice = { list: ['a', 'a'].map((name) => ({ name, description: 'A.' })), load: () => '' }
  expect(codeOf(() => skills(twice))).toBe('duplicate_skill')
})

test('files are read only inside the folder of the skill', async () => {
  const outside = folderOf({ 'secret.txt': 'hush-hush', 'inside/x.txt': 'hush-hush' })
  const dir = folderOf({
    'a/SKILL.md': skillFile('a'),
    'a/data/x.txt': '0123456789',
    'a/data/large.txt': 'x'.repeat(1_000_001),
    'a/data/binary': Buffer.from([1, 0, 2]),
    'b/SKILL.md': skillFile('b'),
    'a-other/x.txt': 'hush-hush',
  })
  symlinkSync(join(outside, 'secret.txt'), join(dir, 'a/link.txt'))
  symlinkSync(outside, join(dir, 'a/out'))
  symlinkSync(join(dir, 'a/data/x.txt'), join(dir, 'a/within.txt'))
  execFileSync('mkfifo', [join(dir, 'a/pipe')])
  const read = find(skills({ dirs: [dir] }), 'read_skill_file')
  const text = async (path: string, skill = 'a'): Promise<unknown> => {
    try {
      return await read({ skill, path })
    } catch (error) {
      return error
    }
  }
  expect(await text('data/x.txt')).toBe('0123456789')
  expect(await text('within.txt')).toBe('0123456789')
  expect(await read({ skill: 'a', path: 'data/x.txt', offset: 7 })).toBe('789')
  const refused = [
    '../b/SKILL.md',
    'data/../../b/SKILL.md',
    '..',
    '',
    '/etc/passwd',
    join(outside, 'secret.txt'),
    'link.txt',
    'out/secret.txt',
    'out/inside/x.txt',
    '..\\b\\SKILL.md',
    'C:/x.txt',
    'data',
    'none.txt',
    'data/large.txt',
    'data/binary',
    'pipe',
    'SKILL.md\0.txt',
    '../a-other/x.txt',
    '.',
  ]
  for (const path of refused) {
    const error = await text(path)
    expect([path, error]).toEqual([path, expect.objectContaining({ name: 'ToolError' })])
    expect((error as Error).message).not.toContain('hush-hush')
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom('..', '.', 'a', 'b', 'out', 'data', '', 'x.txt', 'link.txt', 'secret.txt')),
      async (parts) => {
        const got = await text(parts.join('/'))
        expect(got === '0123456789' || (got as Error).name === 'ToolError').toBe(true)
      },
    ),
  )
})

test('a skill whose folder or file is a link that leads out is refused', () => {
  const outside = folderOf({ 'a/SKILL.md': skillFile('a') })
  const dir = folderOf({ 'x.txt': '' })
  symlinkSync(join(outside, 'a'), join(dir, 'a'))
  expect(codeOf(() => skills({ dirs: [dir] }))).toBe('invalid_skill')
  const other = folderOf({ 'x.txt': '' })
  mkdirSync(join(other, 'a'))
  symlinkSync(join(outside, 'a/SKILL.md'), join(other, 'a/SKILL.md'))
  expect(codeOf(() => skills({ dirs: [other] }))).toBe('invalid_skill')
})

test('the index has a bounded length, for any number of skills', () => {
  const many = (count: number, chars: number) =>
    skills({
      list: Array.from({ length: count }, (_, i) => ({ name: `skill-${i}`, description: 'd'.repeat(chars) })),
      load: () => '',
    }).instructions
  for (const count of [1, 10, 50, 200, 500])
    for (const chars of [10, 100, 1_024]) {
      const text = many(count, chars)
      expect(text.length).toBeLessThanOrEqual(8_000)
      expect(text).toContain('- skill-0')
    }
  expect(many(500, 1_024)).toMatch(/skill-1\b/)
  expect(skills({ list: [], load: () => '' }).instructions).toBe('')
  const names = Array.from({ length: 500 }, (_, i) => ({ name: `${'n'.repeat(50)}-${i}`, description: 'd' }))
  expect(skills({ list: names, load: () => '' }).instructions).toMatch(
    /and \d+ more\. load_skill lists them$/,
  )
  expect(codeOf(() => many(501, 1))).toBe('invalid_skill')
})

test('a changed skill changes the definition of the agent', () => {
  const dir = folderOf({ 'a/SKILL.md': skillFile('a', 'One.') })
  const hash = () =>
    createDefinitionFactory(readParts({ model: new ManualModel(), skills: skills({ dirs: [dir] }) }))(
      undefined,
    ).hash
  const before = hash()
  expect(hash()).toBe(before)
  writeFileSync(join(dir, 'a/SKILL.md'), skillFile('a', 'Two.'))
  expect(hash()).not.toBe(before)
})

test('skills come from a list if there is no file system', async () => {
  const list = [{ name: 'a', description: 'A.', allowedTools: ['read'] }]
  const all = elsewhere.skills({ list, load: async (name) => `Body of ${name}.` })
  expect(await find(all, 'load_skill')({ name: 'a' })).toMatchObject({
    text: expect.stringMatching(/^Body of a\./) as string,
  })
  await expect(find(all, 'read_skill_file')({ skill: 'a', path: 'x' })).rejects.toThrow('have no files')
  const withFiles = elsewhere.skills({ list, load: () => '', readFile: (name, path) => `${name} ${path}` })
  expect(await find(withFiles, 'read_skill_file')({ skill: 'a', path: 'x' })).toBe('a x')
  await expect(
    find(elsewhere.skills({ list, load: () => 1 as never }), 'load_skill')({ name: 'a' }),
  ).rejects.toThrow("load('a') did not return a string")
  const large = elsewhere.skills({ list, load: () => 'x'.repeat(100_001) })
  await expect(find(large, 'load_skill')({ name: 'a' })).rejects.toThrow(
    '100001 characters, but at most 100000 are allowed',
  )
  expect(codeOf(() => elsewhere.skills({ dirs: ['.'] } as never))).toBe('invalid_option')
  expect(codeOf(() => elsewhere.instructionsFrom())).toBe('invalid_option')
})

test('instructions of a project are read, the nearest first, up to the root of the repository, and bounded', () => {
  const folder = folderOf({
    'AGENTS.md': 'Not of the repository.',
    'repo/.git/HEAD': '',
    'repo/AGENTS.md': 'Of the root.',
    'repo/packages/app/AGENTS.md': 'Of the app.',
    'repo/packages/app/CLAUDE.md': 'Also of the app.',
    'repo/packages/app/src/x.ts': '',
    'alone/AGENTS.md': 'Alone.',
  })
  const cwd = join(folder, 'repo/packages/app/src')
  expect(instructionsFrom(['AGENTS.md', 'CLAUDE.md'], { cwd })).toBe(
    'Instructions in ../AGENTS.md:\n\nOf the app.\n\nInstructions in ../CLAUDE.md:\n\nAlso of the app.\n\n' +
      'Instructions in ../../../AGENTS.md:\n\nOf the root.',
  )
  expect(instructionsFrom(['AGENTS.md'], { cwd: join(folder, 'alone') })).toBe(
    'Instructions in AGENTS.md:\n\nAlone.',
  )
  expect(instructionsFrom(['AGENTS.md'], { cwd, root: join(folder, 'repo/packages') })).not.toContain('root')
  expect(instructionsFrom(['NONE.md'], { cwd })).toBe('')
  writeFileSync(join(folder, 'repo/packages/app/AGENTS.md'), 'x'.repeat(50_000))
  const cut = instructionsFrom(['AGENTS.md'], { cwd })
  expect(cut.length).toBeLessThanOrEqual(40_000)
  expect(cut).toMatch(/\[The rest is omitted\.\]$/)
  symlinkSync('/etc/passwd', join(folder, 'repo/LINK.md'))
  expect(codeOf(() => instructionsFrom(['LINK.md'], { cwd }))).toBe('invalid_instructions')
  const wrong = [
    { cwd: 1 },
    { cwd: '' },
    { root: null },
    { maxChars: 0 },
    { maxChars: Number.NaN },
    { maxChars: '9' },
  ]
  for (const options of wrong)
    expect(codeOf(() => instructionsFrom(['AGENTS.md'], options as never))).toBe('invalid_option')
  expect(() => instructionsFrom(['AGENTS.md'], { cwd, root: join(folder, 'alone') })).toThrow(
    'or a folder above it',
  )
  for (const names of [['../AGENTS.md'], ['a/b'], 'AGENTS.md', ['..']])
    expect(codeOf(() => instructionsFrom(names as never, { cwd }))).toBe('invalid_argument')
})
