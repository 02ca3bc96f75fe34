import { fileStore } from '../../src/stores/file/index.js'
import { type Child, buildFileStore, startChild } from './child.js'
import { makeFolder, removeFolder } from './folder.js'
import { leaseRequest, createRecord, createRecords, refusal } from './support.js'

describe('a folder that several processes use', () => {
  let dir: string
  const built = buildFileStore()
  const children: Child[] = []
  const start = (script: string) => {
    const child = startChild(built.url, dir, script)
    children.push(child)
    return child
  }

  beforeEach(() => {
    dir = makeFolder()
  })
  afterEach(async () => {
    for (const child of children.splice(0)) {
      child.process.kill('SIGKILL')
      await child.ended
    }
    removeFolder(dir)
  })
  afterAll(built.remove)

  const writer = `
    const store = fileStore({ dir })
    const lease = store.acquire('s', asked)
    for (let seq = 1; seq <= 100; seq++) store.append(lease, [record(seq)])
    say(process.pid)
    setInterval(() => {}, 1000)
  `

  test('refuses a second process while the first one lives, and names it', async () => {
    const child = start(writer)
    const pid = await child.next()
    const store = fileStore({ dir })
    const error = await refusal('session_busy', () => store.acquire('s', leaseRequest))
    expect(error.message).toContain(`run 1 in process ${String(pid)} on `)
    await refusal('session_busy', () => store.delete('s'))
    expect(store.list()[0]?.holder).toContain(String(pid))
    store.close()
  })

  test('contains every write of a killed process, and frees its session immediately', async () => {
    const child = start(writer)
    await child.next()
    child.process.kill('SIGKILL')
    await child.ended
    const store = fileStore({ dir })
    expect(store.read('s')).toEqual(createRecords(1, 100))
    expect(store.list()[0]?.holder).toBeNull()
    const lease = store.acquire('s', leaseRequest)
    store.append(lease, [createRecord(101)])
    expect(store.read('s')).toEqual(createRecords(1, 101))
    store.close()
  })

  test('frees no session of a process on another machine', async () => {
    const child = start(`
      const store = fileStore({ dir })
      const { default: Database } = await import('libsql')
      store.append(store.acquire('s', asked), [record(1)])
      const database = new Database(dir + '/sessions.db')
      database.exec("UPDATE sessions SET process = '4194305@elsewhere'")
      say('done')
    `)
    await child.next()
    await child.ended
    const store = fileStore({ dir })
    await refusal('session_busy', () => store.acquire('s', leaseRequest))
    store.close()
  })

  test('loses nothing if four processes write to separate sessions at the same time', async () => {
    const crowd = ['a', 'b', 'c', 'd'].map((id) =>
      start(`
        const store = fileStore({ dir })
        const lease = store.acquire('${id}', asked)
        for (let seq = 1; seq <= 300; seq += 2) store.append(lease, [record(seq), record(seq + 1)])
        say('done')
      `),
    )
    for (const child of crowd) expect(await child.next()).toBe('done')
    const store = fileStore({ dir })
    for (const id of ['a', 'b', 'c', 'd']) expect(store.read(id)).toEqual(createRecords(1, 300))
    store.close()
  })

  test('grants a session that four processes request at once to one at a time', async () => {
    // Each process acquires the session repeatedly and appends to the log. It pauses after a refusal, because on a busy
    // machine, processes that ask without a pause can keep the database locked for longer than the holder waits.
    const crowd = ['a', 'b', 'c', 'd'].map(() =>
      start(`
        const store = fileStore({ dir })
        let added = 0
        while (added < 25) {
          const got = attempt(() => store.acquire('s', asked))
          if (got.code === 'session_busy') {
            await new Promise((resolve) => setTimeout(resolve, 1))
            continue
          }
          const head = store.read('s').length
          store.append(got.value, [record(head + 1), record(head + 2)])
          store.release(got.value)
          added += 1
        }
        say('done')
      `),
    )
    for (const child of crowd) expect(await child.next()).toBe('done')
    const store = fileStore({ dir })
    expect(store.read('s')).toEqual(createRecords(1, 200))
    store.close()
  })

  test('waits for a process in the middle of a write', async () => {
    const child = start(`
      const store = fileStore({ dir })
      const { default: Database } = await import('libsql')
      const database = new Database(dir + '/sessions.db')
      database.exec('BEGIN IMMEDIATE')
      say('locked')
      setTimeout(() => database.exec('COMMIT'), 200)
    `)
    await child.next()
    const store = fileStore({ dir })
    store.append(store.acquire('s', leaseRequest), [createRecord(1)])
    expect(store.read('s')).toEqual([createRecord(1)])
    store.close()
  })
})
