import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileStore } from '../../src/stores/file/index.js'
import { StoreError } from '../../src/core/sessions/store/store-error.js'
import type { SyncSessionStore } from '../../src/core/sessions/store/store.js'
import { buildFileStore, startChild } from './child.js'
import { makeFolder, openFiles, removeFolder } from './folder.js'
import { leaseRequest, createRecord, createRecords, refusal } from './support.js'
import { runsAll, sampledRows } from '../support/extent.js'

let dir: string
let copies = 0
const built = buildFileStore()
beforeEach(() => {
  dir = makeFolder()
})
afterEach(() => removeFolder(dir))
afterAll(built.remove)

/** A folder with these database files. */
function folderWith(files: { db: Buffer; wal?: Buffer }): string {
  const copy = join(dir, `copy-${++copies}`)
  mkdirSync(copy)
  writeFileSync(join(copy, 'sessions.db'), files.db)
  if (files.wal) writeFileSync(join(copy, 'sessions.db-wal'), files.wal)
  return copy
}

test('a write-ahead log that is truncated anywhere gives a prefix of the log that accepts appends', async () => {
  const child = startChild(
    built.url,
    dir,
    `const store = fileStore({ dir })
     const lease = store.acquire('s', asked)
     for (let seq = 1; seq <= 20; seq += 2) store.append(lease, [record(seq), record(seq + 1)])
     process.kill(process.pid, 'SIGKILL')`,
  )
  expect((await child.ended).signal).toBe('SIGKILL')
  const [db, wal] = ['sessions.db', 'sessions.db-wal'].map((name) => readFileSync(join(dir, name)))
  if (!db || !wal) throw new Error('There is no database.')
  const frame = 24 + 4096
  const cuts = new Set([0, 1, 31, 32, wal.length - 1, wal.length])
  for (let end = 32; end <= wal.length; end += frame)
    for (const by of [-1, 0, 1, 24, 2000]) cuts.add(end + by)

  const lengths = new Set<number>()
  for (const cut of [...cuts].filter((_, i) => runsAll || i % 5 === 0)) {
    const store = fileStore({ dir: folderWith({ db, wal: wal.subarray(0, cut) }) })
    const log = store.read('s')
    expect(log).toEqual(createRecords(1, log.length))
    expect(log.length % 2).toBe(0)
    lengths.add(log.length)
    store.append(store.acquire('s', leaseRequest), [createRecord(log.length + 1)])
    expect(store.read('s')).toEqual(createRecords(1, log.length + 1))
    store.close()
  }
  // From none to all: the cuts covered every append.
  expect([...lengths].sort((a, b) => a - b)).toEqual([0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20])
})

test('a damaged file is reported, or does not affect the read', async () => {
  const child = startChild(
    built.url,
    dir,
    `const store = fileStore({ dir })
     const lease = store.acquire('s', asked)
     for (let seq = 1; seq <= 30; seq++) store.append(lease, [record(seq, JSON.stringify('é'.repeat(seq * 40)))])
     store.release(lease)
     const { default: Database } = await import('libsql')
     new Database(dir + '/sessions.db').exec('PRAGMA wal_checkpoint(TRUNCATE)')`,
  )
  expect((await child.ended).code).toBe(0)
  const db = readFileSync(join(dir, 'sessions.db'))
  expect(db.length).toBeGreaterThan(10 * 4096)

  const codes = new Set<string>()
  const damages = [
    Buffer.alloc(4096, 0xff),
    Buffer.alloc(4096),
    Buffer.alloc(8, 0xff),
    Buffer.alloc(200, 0xa5),
  ]
  for (const damage of damages) {
    for (const offset of [0, 1500]) {
      const pages = Array.from({ length: Math.ceil(db.length / 4096) }, (_, page) => page * 4096)
      for (const page of sampledRows(pages)) {
        const bad = Buffer.from(db)
        damage.copy(bad, page + offset)
        const copy = folderWith({ db: bad })
        // Invalid UTF-8 ends a process that reads it as text. It would end this one.
        let store: SyncSessionStore | undefined
        try {
          store = fileStore({ dir: copy })
          store.list()
          store.read('s', { from: 'snapshot' })
          store.append(store.acquire('s', leaseRequest), [createRecord(31)])
        } catch (error) {
          expect(error).toBeInstanceOf(StoreError)
          codes.add((error as StoreError).code)
        }
        store?.close()
        expect(openFiles(copy) ?? []).toEqual([])
        removeFolder(copy)
      }
    }
  }
  expect(codes).toContain('corrupt_log')
  for (const code of codes) expect(['corrupt_log', 'newer_log', 'out_of_order']).toContain(code)
})

test('a file that is not a database is refused, and stays unchanged', async () => {
  const text = Buffer.from('Dear diary, '.repeat(1000))
  const copy = folderWith({ db: text })
  const error = await refusal('corrupt_log', () => fileStore({ dir: copy }))
  expect(error.message).toContain(join(copy, 'sessions.db'))
  expect(readFileSync(join(copy, 'sessions.db')).equals(text)).toBe(true)
})
