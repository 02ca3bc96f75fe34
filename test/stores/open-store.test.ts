import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { ConfigError, StatewrightError, UsageError } from '../../src/core/base/errors.js'
import { checkSessionId, openStore } from '../../src/stores/index.js'
import { makeFolder, removeFolder } from './folder.js'
import { leaseRequest, failure, createRecord } from './support.js'
import { unicodeText } from '../support/unicode-text.js'

describe('openStore', () => {
  let dir: string
  beforeEach(() => {
    dir = makeFolder()
  })
  afterEach(() => removeFolder(dir))

  test('opens memory: with a new store each time', async () => {
    const store = await openStore('memory:')
    await store.append(await store.acquire('s', leaseRequest), [createRecord(1)])
    expect(await store.read('s')).toEqual([createRecord(1)])
    expect(await (await openStore('memory:')).read('s')).toEqual([])
  })

  test('opens a folder by an absolute path, a relative one, and a file URL', async () => {
    const folder = join(dir, 'with space & %41')
    const urls = [`file:${folder}`, `file:${relative(process.cwd(), folder)}`, pathToFileURL(folder).href]
    for (const [index, url] of urls.entries()) {
      const store = await openStore(url)
      const lease = await store.acquire('s', leaseRequest)
      await store.append(lease, [createRecord(index + 1)])
      await store.release(lease)
      expect(await store.read('s')).toHaveLength(index + 1)
      await store.close()
    }
    expect(existsSync(join(folder, 'sessions.db'))).toBe(true)
  })

  test('accepts a Postgres URL, and connects on first use', async () => {
    for (const scheme of ['postgres', 'postgresql']) {
      const store = await openStore(`${scheme}://user:secret@127.0.0.1:1/db`)
      const error = await failure(() => store.list())
      expect(error).toMatchObject({ code: 'store_unavailable' })
      expect(inspect(error, { depth: 10, showHidden: true })).not.toContain('secret')
      await store.close()
    }
  })

  test.each([
    '',
    'memory',
    'memory:x',
    'file:',
    'file://elsewhere/dir',
    'file:a\0b',
    './dir',
    'redis://user:secret@host',
    'postgress://user:secret@host/db',
    'http://user:secret@host',
    ' file:x',
  ])('refuses %j, lists the valid stores, and shows no password', async (url) => {
    const error = await failure(() => openStore(url))
    expect(error).toBeInstanceOf(ConfigError)
    expect(error).toMatchObject({ code: 'invalid_store', message: expect.stringContaining('file:DIR') })
    expect(inspect(error)).not.toContain('secret')
  })

  test.each([undefined, null, 7, {}])('refuses %p', async (url) => {
    expect(await failure(() => openStore(url as never))).toBeInstanceOf(StatewrightError)
  })
})

describe('checkSessionId', () => {
  test.each(['a', '7', '_', 'a.b', 'team:me@example.com', 'a-b_c', 'x'.repeat(200)])('accepts %j', (id) => {
    expect(checkSessionId(id)).toBe(id)
  })

  test.each([
    '',
    '.',
    '..',
    '.a',
    '-a',
    'a/b',
    'a\\b',
    'a b',
    'a\n',
    '\u0000',
    'é',
    'x'.repeat(201),
    null,
    undefined,
    7,
    {},
    ['a'],
  ])('refuses %j, and lists the allowed characters', (id) => {
    expect(() => checkSessionId(id)).toThrow(UsageError)
    expect(() => checkSessionId(id)).toThrow(/1 to 200 letters/)
  })

  test('accepts nothing that could be a path, a flag or a control character', () => {
    fc.assert(
      fc.property(unicodeText({ maxLength: 210 }), (id) => {
        try {
          checkSessionId(id)
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_session' })
          expect((error as Error).message.length).toBeLessThan(400)
          return
        }
        expect(id).toMatch(/^[\w:@][\w.:@-]{0,199}$/)
        expect(id.endsWith('\n')).toBe(false)
      }),
    )
  })
})
