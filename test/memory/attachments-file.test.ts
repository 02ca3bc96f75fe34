import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, open, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { loadAttachment } from '../../src/memory/attachments/load-attachment.js'
import { refusal } from './support/refusal.js'

let folder: string
let root: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'statewright-attachments-'))
  root = join(folder, 'root')
  await mkdir(join(root, 'sub'), { recursive: true })
  await writeFile(join(folder, 'secret.txt'), 'secret')
  await writeFile(join(root, 'notes.txt'), 'inside')
  await writeFile(join(root, 'sub', '..dots.txt'), 'dots')
  await symlink(join(folder, 'secret.txt'), join(root, 'link-out.txt'))
  await symlink(folder, join(root, 'folder-out'))
  await symlink('notes.txt', join(root, 'link-in.txt'))
  await symlink('loop.txt', join(root, 'loop.txt'))
  await symlink(root, join(folder, 'root-link'))
})

afterAll(async () => {
  await rm(folder, { recursive: true })
})

it('a file has the name and the type of its path', async () => {
  const path = join(root, 'notes.txt')
  const loaded = { name: 'notes.txt', mimeType: 'text/plain', bytes: 6, text: 'inside' }
  expect(await loadAttachment({ path })).toEqual(loaded)
  expect(await loadAttachment({ path, name: 'x', mimeType: 'text/csv' })).toEqual({
    ...loaded,
    name: 'x',
    mimeType: 'text/csv',
  })
})

describe('with a root', () => {
  it.each(['notes.txt', 'sub/../notes.txt', 'link-in.txt'])('%s is read from inside it', async (path) => {
    expect((await loadAttachment({ path }, { root })).text).toBe('inside')
  })

  it('a name that starts with dots stays inside', async () => {
    expect((await loadAttachment({ path: 'sub/..dots.txt' }, { root })).text).toBe('dots')
  })

  it('an absolute path inside is read, even if the root is a link', async () => {
    const link = join(folder, 'root-link')
    expect((await loadAttachment({ path: join(root, 'notes.txt') }, { root: link })).text).toBe('inside')
    expect((await loadAttachment({ path: join(link, 'notes.txt') }, { root: link })).text).toBe('inside')
  })

  it('the root may be a relative path', async () => {
    const loaded = await loadAttachment({ path: 'notes.txt' }, { root: relative(process.cwd(), root) })
    expect(loaded.text).toBe('inside')
  })

  it.each(['../secret.txt', 'sub/../../secret.txt', 'link-out.txt', 'folder-out/secret.txt', '/etc/passwd'])(
    '%s is outside of it',
    async (path) => {
      await refusal(loadAttachment({ path, mimeType: 'text/plain' }, { root }), 'outside_root')
    },
  )

  it('a file outside is refused whether it exists or not', async () => {
    await refusal(loadAttachment({ path: '../nothing.txt' }, { root }), 'outside_root')
  })
})

describe('a path that is not a file is refused immediately', () => {
  it('folders and devices', async () => {
    await refusal(loadAttachment({ path: root, mimeType: 'text/plain' }), 'not_a_file')
    await refusal(loadAttachment({ path: '/dev/zero', mimeType: 'text/plain' }), 'not_a_file')
  })

  it('a pipe without a writer', async () => {
    const path = join(folder, 'pipe.txt')
    execFileSync('mkfifo', [path])
    await refusal(loadAttachment({ path }), 'not_a_file')
  })

  it('a socket', async () => {
    const path = join(folder, 'socket.txt')
    const server = createServer()
    await new Promise<void>((resolve) => {
      server.listen(path, resolve)
    })
    await refusal(loadAttachment({ path }), 'not_a_file')
    await new Promise((resolve) => {
      server.close(resolve)
    })
  })

  it.each([
    ['a file that does not exist', 'nothing.txt', 'not_found'],
    ['a path through a file', 'notes.txt/x.txt', 'not_found'],
    ['a circular link', 'loop.txt', 'not_found'],
    ['a path with a zero byte', 'a\0.txt', 'invalid_attachment'],
    ['an endless path', `${'a'.repeat(5000)}.txt`, 'not_found'],
  ] as const)('%s', async (_, path, code) => {
    await refusal(loadAttachment({ path }, { root }), code)
  })
})

describe('a file that is too large', () => {
  it('of 200 MB is refused by its size, without reading it', async () => {
    const path = join(folder, 'large.txt')
    await (await open(path, 'w')).close()
    await truncate(path, 200_000_000)
    const before = process.memoryUsage().arrayBuffers
    const error = await refusal(loadAttachment({ path }), 'too_large')
    expect(error.message).toBe('large.txt is larger than 10000000 bytes. To allow it, raise maxBytes.')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(20_000_000)
  })

  it('and has no size is refused while it is read', async () => {
    // Kernel files report a size of zero.
    const load = loadAttachment({ path: '/proc/self/maps', mimeType: 'text/plain' }, { maxBytes: 100 })
    if (process.platform === 'linux') await refusal(load, 'too_large')
    else await refusal(load, 'not_found')
  })

  it('by one byte is refused, and a file of exactly that size is read', async () => {
    const path = join(root, 'notes.txt')
    expect((await loadAttachment({ path }, { maxBytes: 6 })).bytes).toBe(6)
    await refusal(loadAttachment({ path }, { maxBytes: 5 }), 'too_large')
  })
})
