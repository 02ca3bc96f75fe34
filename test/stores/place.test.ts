import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import Database from 'libsql'
import { ConfigError } from '../../src/core/base/errors.js'
import { fileStore } from '../../src/stores/file/index.js'
import { buildFileStore, startChild } from './child.js'
import { makeFolder, openFiles, removeFolder } from './folder.js'
import { leaseRequest, failure, createRecord, refusal, createSummary } from './support.js'
import { sampled } from '../support/extent.js'

let dir: string
const built = buildFileStore()
beforeEach(() => {
  dir = makeFolder()
})
afterEach(() => removeFolder(dir))
afterAll(built.remove)

const isWindows = process.platform === 'win32'

describe('the folder of a file store', () => {
  ;(isWindows ? test.skip : test)('and its files are for their owner only, whatever the umask', () => {
    const created = join(dir, 'a', 'b')
    const before = process.umask(0)
    try {
      const store = fileStore({ dir: created })
      store.append(store.acquire('s', leaseRequest), [createRecord(1)])
      const modes = readdirSync(created).map((name) => [name, statSync(join(created, name)).mode & 0o777])
      expect(Object.fromEntries(modes)).toEqual({
        'sessions.db': 0o600,
        'sessions.db-wal': 0o600,
        'sessions.db-shm': 0o600,
      })
      expect(statSync(created).mode & 0o777).toBe(0o700)
      expect(process.umask()).toBe(0)
      store.close()
    } finally {
      process.umask(before)
    }
  })

  test.each(['', undefined, 7, null])('cannot be %p', async (wrong) => {
    expect(await failure(() => fileStore({ dir: wrong as string }))).toBeInstanceOf(ConfigError)
  })

  test('is the only required option, and sync is normal or full', async () => {
    expect(await failure(() => fileStore({ dir, sync: 'off' as 'full' }))).toBeInstanceOf(ConfigError)
    const store = fileStore({ dir, sync: 'full' })
    store.append(store.acquire('s', leaseRequest), [createRecord(1)])
    expect(store.read('s')).toEqual([createRecord(1)])
    store.close()
  })

  test('cannot be a file, nor contain a folder in place of the database', async () => {
    writeFileSync(join(dir, 'file'), 'text')
    await refusal('store_unavailable', () => fileStore({ dir: join(dir, 'file') }))
    await refusal('store_unavailable', () => fileStore({ dir: join(dir, 'file', 'below') }))
    mkdirSync(join(dir, 'taken', 'sessions.db'), { recursive: true })
    await refusal('store_unavailable', () => fileStore({ dir: join(dir, 'taken') }))
    await refusal('store_unavailable', () => fileStore({ dir: `${dir}/a\0b` }))
    if (process.platform === 'linux') {
      await refusal('store_unavailable', () => fileStore({ dir: '/proc/sessions/of/mine' }))
      await refusal('store_unavailable', () => fileStore({ dir: '/dev/null' }))
      await refusal('store_unavailable', () => fileStore({ dir: '/dev/null/x' }))
    }
    symlinkSync(join(dir, 'nowhere'), join(dir, 'dangling'))
    await refusal('store_unavailable', () => fileStore({ dir: join(dir, 'dangling') }))
  })

  const files = openFiles('')
  if (files === null)
    console.warn('Not tested here: whether closed stores keep files open, which takes /proc.')
  ;(files === null ? test.skip : test)('has no open file once its stores are closed', async () => {
    const folders = sampled(50)
    for (let n = 0; n < 2 * folders; n++) {
      const store = fileStore({ dir: join(dir, `${n % folders}`, 'quo\'ted ?x=1#"') })
      const lease = store.acquire('s', leaseRequest)
      if (n < folders) store.append(lease, [createRecord(1), createRecord(2)], createSummary('A title'))
      store.renew(lease, 1_000)
      expect(store.read('s', { from: 'snapshot' })).toHaveLength(2)
      expect(store.read('s', { from: 2 })).toHaveLength(1)
      expect(store.list()).toHaveLength(1)
      await refusal('session_busy', () => store.acquire('s', leaseRequest))
      await refusal('out_of_order', () => store.append(lease, [createRecord(9)]))
      store.release(lease)
      store.close()
      expect(openFiles(dir)).toEqual([])
    }
    const newer = new Database(join(dir, 'sessions.db'))
    newer.exec('PRAGMA user_version = 99')
    newer.close()
    for (let n = 0; n < 10; n++) await refusal('newer_log', () => fileStore({ dir }))
    expect(openFiles(dir)).toEqual([])
  })

  test('cannot contain a database of another program, or of a newer Statewright', async () => {
    const open = (sql: string) => {
      const database = new Database(join(dir, 'sessions.db'))
      database.exec(sql)
      database.close()
    }
    open('CREATE TABLE sessions (cookie TEXT)')
    expect((await refusal('store_unavailable', () => fileStore({ dir }))).message).toContain(
      'another program',
    )
    open('PRAGMA user_version = 99')
    expect((await refusal('newer_log', () => fileStore({ dir }))).message).toContain('99')
  })

  ;(isWindows ? test.skip : test)('is told to be read-only when it cannot be written', async () => {
    const closed = join(dir, 'closed')
    fileStore({ dir: join(closed, 'store') }).close()
    chmodSync(dir, 0o755)
    for (const [path, mode] of [
      ['closed/store/sessions.db', 0o444],
      ['closed/store', 0o555],
      ['closed', 0o555],
    ] as const) {
      chmodSync(join(dir, path), mode)
    }
    // File modes do not restrict root, so the child drops its privileges.
    const child = startChild(
      built.url,
      closed,
      `if (process.getuid() === 0) process.setuid(65534)
       say(attempt(() => fileStore({ dir: dir + '/store' })))
       say(attempt(() => fileStore({ dir: dir + '/new' })))`,
    )
    expect(await child.next()).toMatchObject({ name: 'StoreError', code: 'read_only' })
    expect(await child.next()).toMatchObject({ name: 'StoreError', code: 'read_only' })
    await child.ended
    chmodSync(join(dir, 'closed/store/sessions.db'), 0o666)
    const second = startChild(
      built.url,
      closed,
      `if (process.getuid() === 0) process.setuid(65534)
       say(attempt(() => fileStore({ dir: dir + '/store' })))`,
    )
    expect(await second.next()).toMatchObject({ name: 'StoreError', code: 'read_only' })
    await second.ended
    for (const path of ['closed', 'closed/store']) chmodSync(join(dir, path), 0o755)
  })
})

/** A private mount that disappears with the process. */
const privately = ['unshare', ...(process.getuid?.() === 0 ? [] : ['--map-root-user']), '--mount']
const canMount =
  spawnSync(privately[0] ?? '', [...privately.slice(1), 'mount', '-t', 'tmpfs', 'none', '/tmp']).status === 0

describe('a full disk', () => {
  if (!canMount) console.warn('Not tested here: a full disk, which takes a mount (unshare --mount).')

  // The write-ahead log fills a small mount. Its checkpoint into the database fills the larger one.
  const sizes = ['1m', '40m']
  ;(canMount ? test.each(sizes) : test.skip.each(sizes))(
    'of %s is told, loses nothing, and is written to again when there is space',
    async (size) => {
      const script = `
        import { rmSync, writeFileSync } from 'node:fs'
        const data = JSON.stringify('x'.repeat(${size === '1m' ? 600 : 20_000}))
        writeFileSync(dir + '/ballast', Buffer.alloc(${parseInt(size, 10)} * 500_000))
        const store = fileStore({ dir })
        const lease = store.acquire('s', asked)
        let head = 0
        const fill = () => {
          for (;;) {
            const { code, message } = attempt(() => store.append(lease, [record(head + 1, data), record(head + 2, data)]))
            if (code) return { code, message }
            head += 2
          }
        }
        const isWhole = (log) =>
          log.length === head && log.every((each, index) => each.seq === index + 1 && each.data === data)
        const first = fill()
        const whole = isWhole(store.read('s'))
        const again = attempt(() => store.append(lease, [record(head + 1, data)]))
        rmSync(dir + '/ballast')
        const renewed = attempt(() => store.renew(lease, 1e9))
        store.append(lease, [record(++head, data)])
        const reopened = fileStore({ dir })
        say({ first, whole, again, renewed, wholeAfter: isWhole(reopened.read('s')), head })
      `
      const mounted = ['sh', '-c', `mount -t tmpfs -o size=${size} none "$0" && exec "$@"`, dir]
      const child = startChild(built.url, dir, script, [...privately, ...mounted])
      const report = (await child.next()) as { head: number }
      expect(report).toMatchObject({
        first: { code: 'disk_full', message: expect.stringContaining(dir) },
        whole: true,
        again: { code: 'disk_full' },
        renewed: { value: { sessionId: 's' } },
        wholeAfter: true,
      })
      expect(report.head).toBeGreaterThan(20)
      await child.ended
    },
  )
})
