import { symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createNoteTools } from '../../src/cli/demo.js'
import { folder, removeFolders } from './support.js'

afterEach(removeFolders)

function call(root: string, name: string, input: object): Promise<unknown> {
  const tool = createNoteTools(root).find((candidate) => candidate.name === name)
  const execute = tool?.execute as ((input: object, execution: object) => unknown) | undefined
  return Promise.resolve(execute?.(input, {}))
}

describe('the tools of the demo', () => {
  test('list and read the files of the folder', async () => {
    const root = await folder({ 'b.txt': 'B', 'a.txt': 'A' })
    expect(await call(root, 'list_files', {})).toBe('a.txt\nb.txt')
    expect(await call(root, 'read_file', { path: './a.txt' })).toBe('A')
  })

  test('fail for a missing file, with the names of existing files', async () => {
    const root = await folder({ 'a.txt': 'A' })
    await expect(call(root, 'read_file', { path: 'c.txt' })).rejects.toMatchObject({
      kind: 'failed',
      message: "There is no file 'c.txt'. The files are: a.txt.",
    })
  })

  test.each(['../secret.txt', '/etc/passwd', '..', '.', 'a/../../secret.txt'])(
    'refuse %s by policy',
    async (path) => {
      const root = await folder({ 'a.txt': 'A' })
      await expect(call(root, 'read_file', { path })).rejects.toMatchObject({ kind: 'policy_denied' })
    },
  )

  test('refuse a link out of the folder by policy', async () => {
    const [root, outside] = [await folder({}), await folder({ 'secret.txt': 'S' })]
    await symlink(join(outside, 'secret.txt'), join(root, 'link.txt'))
    await expect(call(root, 'read_file', { path: 'link.txt' })).rejects.toMatchObject({
      kind: 'policy_denied',
    })
  })

  test('fail for a file that is too large for a model', async () => {
    const root = await folder({})
    await writeFile(join(root, 'big.txt'), 'x'.repeat(100_001))
    await expect(call(root, 'read_file', { path: 'big.txt' })).rejects.toThrow('larger than 100000 bytes')
  })

  test('calculate', async () => {
    expect(await call('/', 'calculate', { expression: '2646.00 + 814.50 + 391.20' })).toBe(3851.7)
  })
})
