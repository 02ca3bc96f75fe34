import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Database from 'libsql'
import { type LogRecord, restoreSession } from '../../src/index.js'
import type { StoredSession } from '../../src/core/sessions/session.js'
import { calls, copyOf, type Kept, createPlace, toolsModule } from './kept.js'
import { faults } from '../support/record-faults.js'
import { removeFolders } from './support.js'
import { longTest } from '../support/extent.js'
import { summary as createSummary } from '../../src/testing/store/store-scene.js'

afterEach(removeFolders)

const rows = (out: string) =>
  out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

/** A session 'done' that has ended, and a later session 'waits' that waits for an approval. */
const two = (): Promise<Kept> => copyOf('two', playTwo)

/** The same sessions, written now. */
async function playTwo(): Promise<Kept> {
  const place = await createPlace({
    'done.json': calls(['l', 'look', { at: 'the sky' }]),
    'waits.json': calls(['m', 'send_mail', { to: 'ann' }]),
    'tools.mjs': toolsModule,
  })
  for (const id of ['done', 'waits']) {
    await place.run(['run', '--session', id, `--rehearsal=${id}.json`, '-t', 'tools.mjs', `${id}?`])
  }
  return place
}

describe('sessions list', () => {
  test('is a table, with the most recent session first', async () => {
    const { run } = await playTwo()
    const { code, out, err } = await run(['sessions', 'list'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [head, ...lines] = out.trimEnd().split('\n')
    expect(head?.split(/ +/)).toEqual(['session', 'state', 'when', 'messages', 'tokens', 'cost', 'title'])
    expect(lines[0]).toMatch(/^waits {4}WAITING_FOR_INPUT {2}just now +2 +\d+ {2}\$0\.00 {2}waits\?$/)
    expect(lines[1]).toMatch(/^done {5}COMPLETED +just now +4 +\d+ {2}\$0\.00 {2}done\?$/)
  })

  test('prints the same data with --json, with times as ISO', async () => {
    const { run } = await two()
    const [waits, done] = rows((await run(['sessions', 'list', '--json'])).out)
    expect(waits).toMatchObject({ id: 'waits', state: 'WAITING_FOR_INPUT', reason: 'approval', holder: null })
    expect(done).toMatchObject({
      id: 'done',
      state: 'COMPLETED',
      title: 'done?',
      messages: 4,
      runs: 1,
      cost: 0,
    })
    expect(new Date(String(done?.updatedAt)).toISOString()).toBe(done?.updatedAt)
  })

  test('--limit shows the newest, and the number of the others', async () => {
    const { run } = await two()
    const { out } = await run(['sessions', 'list', '--limit', '1'])
    expect(out).toContain('waits?')
    expect(out).not.toContain('done?')
    expect(out).toContain('There are older sessions: --limit 0 shows all.')
    expect(rows((await run(['sessions', 'list', '--json', '--limit=0'])).out)).toHaveLength(2)
  })

  test('--prefix and --tag filter by owner, and --children includes those of sub-agents', async () => {
    const { run, withStore } = await two()
    await withStore((store) => {
      for (const [id, more] of [
        ['ann:1', { tags: { user: 'ann', 'a=b': 'c' } }],
        ['anna:1', { tags: { user: 'ann' } }],
        ['ann:1:run.1.1', { parent: 'ann:1' }],
      ] as const) {
        const lease = store.acquire(id, { holder: 'the test', ttlMs: 1_000 })
        store.append(lease, [{ ...(store.read('done')[0] as LogRecord) }], { ...createSummary(id), ...more })
        store.release(lease)
      }
    })
    const listed = async (...args: string[]) =>
      rows((await run(['sessions', 'list', '--json', ...args])).out)
        .map(({ id }) => String(id))
        .sort()
    expect(await listed()).toEqual(['ann:1', 'anna:1', 'done', 'waits'])
    expect(await listed('--prefix', 'ann')).toEqual(['ann:1'])
    expect(await listed('--prefix', 'ann', '--children')).toEqual(['ann:1', 'ann:1:run.1.1'])
    expect(await listed('--tag', 'user=ann')).toEqual(['ann:1', 'anna:1'])
    expect(await listed('--tag', 'user=ann', '--prefix=ann')).toEqual(['ann:1'])
    for (const args of [
      ['--tag', 'ann'],
      ['--tag', '=ann'],
      ['--tag', 'user='],
      ['--prefix', 'ann:'],
    ]) {
      const { code, err } = await run(['sessions', 'list', ...args])
      expect(code).toBe(2)
      expect(err).toMatch(/NAME=VALUE|before the colon/)
    }
  })

  test('shows a run without a process as interrupted', async () => {
    const { run, withStore } = await two()
    const id = (await run(['sessions', 'fork', 'done', '--at', '3'])).out.trim()
    expect(rows((await run(['sessions', 'list', '--json'])).out)[0]).toMatchObject({
      id,
      state: 'interrupted',
    })
    await withStore((store) => store.acquire(id, { holder: 'run 4711', ttlMs: 60_000 }))
    const [held] = rows((await run(['sessions', 'list', '--json'])).out)
    expect(held).toMatchObject({ id, state: 'WAITING_FOR_TOOL' })
    expect(held?.holder).toContain('run 4711')
  })

  test('reports a damaged log, and hides no other session', async () => {
    const { run, withStore } = await two()
    await withStore((store) => {
      const lease = store.acquire('waits', { holder: 'somebody', ttlMs: 60_000 })
      const seq = store.read('waits').length + 1
      store.append(lease, [{ seq, at: 0, type: 'event', data: '{}', check: 'none' }])
      store.release(lease)
    })
    const { code, out } = await run(['sessions', 'list', '--json'])
    expect(code).toBe(0)
    expect(rows(out).map(({ id, state }) => [id, state])).toEqual([
      ['waits', 'corrupt_log'],
      ['done', 'COMPLETED'],
    ])
    const shown = await run(['sessions', 'show', 'waits'])
    expect(shown.code).toBe(2)
    expect(shown.err).toMatch(
      /record 4 is damaged.*intact\. statewright sessions fork waits --at 3 continues from there/,
    )
    const events = await run(['sessions', 'show', 'waits', '--events'])
    expect(events.out.trimEnd().split('\n')).toHaveLength(3)
    expect(events.err).toContain('record 4 is damaged')
  })
})

describe('sessions show', () => {
  test('is the conversation with one line per call and result, the totals, and the state', async () => {
    const { run } = await playTwo()
    const { code, out } = await run(['sessions', 'show', 'done'])
    expect(code).toBe(0)
    expect(out).toMatch(
      new RegExp(
        [
          '^Session done · done\\?\ncreated .* UTC, written just now\n\n',
          'You\ndone\\?\n\n',
          'Assistant\nLet me see\\.\n  → look\\(at: "the sky"\\)\n  ✓ look  seen\nDone\\.\n\n',
          'COMPLETED · end_turn\n  steps   2 of 50\n  tokens  .*\n  cost    \\$0\\.00\n  record  5 of 5\n$',
        ].join(''),
      ),
    )
  })

  test('shows what it waits for and how to continue', async () => {
    const { run } = await two()
    const { out } = await run(['sessions', 'show', 'waits'])
    expect(out).toMatch(/The run is waiting: send_mail\(to: "ann"\) \[m@\w{16}\] needs approval\.\n/)
    expect(out).toMatch(/Continue with: statewright resume waits --approve m@\w{16} --store=file:kept\n/)
  })

  test('--events lists the records by number, and --at shows the session after one of them', async () => {
    const { run } = await two()
    const lines = (await run(['sessions', 'show', 'done', '--events'])).out.trimEnd().split('\n')
    expect(lines.map((line) => line.replace(/\d{4}-\d\d-\d\d \S+/, 'WHEN'))).toEqual([
      '    1  WHEN  opened',
      '    2  WHEN  start               done?',
      '    3  WHEN  done.actor.model    Let me see. → look(at: "the sky")',
      '    4  WHEN  TOOL_RESULT         l ok: seen',
      '    5  WHEN  done.actor.model    Done.',
    ])
    const { out } = await run(['sessions', 'show', 'done', '--at', '3'])
    expect(out).toContain('→ look')
    expect(out).not.toContain('Done.')
    expect(out).toMatch(/record {2}3 of 5\n.*statewright sessions fork done --store=file:kept --at 3\n$/)
    expect(
      (await run(['sessions', 'show', 'done', '--events', '--at=2'])).out.trimEnd().split('\n'),
    ).toHaveLength(2)
  })

  test('omits messages of the loop', async () => {
    const cut = { turns: [{ text: 'One, ', finishReason: 'length' }, { text: 'two.' }] }
    const { run } = await createPlace({ 'play.json': cut })
    await run(['run', '--session', 's', '--rehearsal=play.json', 'Count.'])
    const { out } = await run(['sessions', 'show', 's'])
    expect(out).toContain('You\nCount.\n\nAssistant\nOne,\ntwo.\n\nCOMPLETED')
  })

  test('sends no control character of a model or a tool to the terminal', async () => {
    const evil = '\u001b]0;evil\u0007\u001b[2J\u009b31m\u202eabc'
    const turns = [
      { text: evil, toolCalls: [{ id: 'x\u001b[1m', name: 'look', arguments: { at: evil } }] },
      { text: evil },
    ]
    const { run } = await createPlace({ 'play.json': { turns }, 'tools.mjs': toolsModule })
    await run(['run', '--session', 's', '--rehearsal=play.json', '-t', 'tools.mjs', evil])
    for (const args of [
      ['list'],
      ['list', '--json'],
      ['show', 's'],
      ['show', 's', '--events'],
      ['export', 's'],
      ['export', 's', '--markdown'],
    ]) {
      const { code, out } = await run(['sessions', ...args])
      expect(code).toBe(0)
      expect(out).toContain('abc')
      expect(out).not.toMatch(/[^\P{Cc}\n\t]|[\u202a-\u202e]/u)
    }
  })
})

describe('sessions show --json', () => {
  test('prints each record as a line that matches the schema of the package', async () => {
    const { run } = await two()
    const { code, out } = await run(['sessions', 'show', 'waits', '--json'])
    expect(code).toBe(0)
    const records = rows(out)
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, i) => i + 1))
    expect(records.slice(0, 2).map(({ type }) => type)).toEqual(['opened', 'start'])
    expect(records.flatMap(faults)).toEqual([])
    expect(rows((await run(['sessions', 'show', 'waits', '--json', '--at', '2'])).out)).toEqual(
      records.slice(0, 2),
    )
    expect((await run(['sessions', 'show', 'waits', '--json', '--events'])).code).toBe(2)
  })

  test('prints the records before a damaged one, and names it', async () => {
    const { run, cwd } = await two()
    const db = new Database(join(cwd, 'kept', 'sessions.db'))
    db.exec("UPDATE records SET data = '{}' WHERE seq = 3")
    db.close()
    const { code, out, err } = await run(['sessions', 'show', 'waits', '--json'])
    expect(rows(out).map(({ seq }) => seq)).toEqual([1, 2])
    expect([code, err]).toEqual([2, expect.stringContaining('record 3')])
  })
})

describe('sessions export', () => {
  test('prints input for restoreSession, with every call closed', async () => {
    const { run } = await two()
    const { out } = await run(['sessions', 'export', 'waits'])
    const session = restoreSession(JSON.parse(out))
    expect(session.id).toBe('waits')
    expect(session.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool'])
    expect(session.usage.totalTokens).toBeGreaterThan(0)
  })

  test('--out writes a file, and replaces none without --force', async () => {
    const { run, cwd } = await two()
    await writeFile(join(cwd, 'mine.json'), 'mine')
    const refused = await run(['sessions', 'export', 'done', '--out', 'mine.json'])
    expect(refused).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('replace it with --force'),
    })
    expect(await readFile(join(cwd, 'mine.json'), 'utf8')).toBe('mine')
    expect((await run(['sessions', 'export', 'done', '--out', 'mine.json', '--force'])).code).toBe(0)
    const stored = JSON.parse(await readFile(join(cwd, 'mine.json'), 'utf8')) as StoredSession
    expect(stored.messages).toHaveLength(4)
  })

  const isWindows = process.platform === 'win32'
  ;(isWindows ? test.skip : test)(
    '--out makes a file for its owner only, and leaves no half of one',
    async () => {
      const { run, cwd } = await two()
      await run(['sessions', 'export', 'done', '--out', 'mine.json'])
      expect(((await stat(join(cwd, 'mine.json'))).mode & 0o777).toString(8)).toBe('600')
      await writeFile(join(cwd, 'theirs.json'), 'theirs', { mode: 0o644 })
      await run(['sessions', 'export', 'done', '--out', 'theirs.json', '--force'])
      expect(((await stat(join(cwd, 'theirs.json'))).mode & 0o777).toString(8)).toBe('644')
    },
  )

  test('--markdown keeps calls and results whole, whatever they contain', async () => {
    const turns = [
      { text: 'See:', toolCalls: [{ id: 'l', name: 'look', arguments: { at: '```\n# no head' } }] },
      { text: '**Done.**' },
    ]
    const { run } = await createPlace({ 'play.json': { turns }, 'tools.mjs': toolsModule })
    await run(['run', '--session', 's', '--rehearsal=play.json', '-t', 'tools.mjs', 'Go'])
    const { out } = await run(['sessions', 'export', 's', '--markdown'])
    expect(out.replaceAll(/· .*/g, '· WHEN')).toBe(
      '# Go\n\n## You · WHEN\n\nGo\n\n## Assistant · WHEN\n\nSee:\n\nCalls `look`:\n\n' +
        '````\n{"at":"```\\n# no head"}\n````\n\nResult of `look`:\n\n```\nseen\n```\n\n' +
        '## Assistant · WHEN\n\n**Done.**\n',
    )
  })
})

describe('sessions fork', () => {
  test('prints the id of a new session that continues from there', async () => {
    const { run } = await two()
    const { code, out } = await run(['sessions', 'fork', 'done', '--at', '2'])
    expect(code).toBe(0)
    const resumed = await run(['resume', out.trim(), '--rehearsal=done.json', '-t', 'tools.mjs', '--json'])
    expect(JSON.parse(resumed.out)).toMatchObject({
      state: 'COMPLETED',
      output: 'Done.',
      sessionId: out.trim(),
    })
    expect(rows((await run(['sessions', 'list', '--json'])).out)).toHaveLength(3)
  })
})

describe('sessions rename', () => {
  const titles = async ({ run }: Kept) =>
    rows((await run(['sessions', 'list', '--json'])).out).map(({ id, title }) => [id, title])

  test('sets a title, which every command shows, and removes it', async () => {
    const place = await two()
    const { run } = place
    expect(await run(['sessions', 'rename', 'done', 'The sky'])).toMatchObject({
      code: 0,
      out: 'Renamed done.\n',
    })
    expect(await titles(place)).toEqual([
      ['waits', 'waits?'],
      ['done', 'The sky'],
    ])
    expect((await run(['sessions', 'list'])).out).toMatch(/^done .* {2}The sky$/m)
    expect((await run(['sessions', 'show', 'done'])).out).toMatch(/^Session done · The sky\n/)
    expect((await run(['sessions', 'export', 'done', '--markdown'])).out).toMatch(/^# The sky\n/)
    const declined = await run(['sessions', 'delete', 'done'], { tty: true, input: 'n\n' })
    expect(declined.out).toContain('Delete session done (The sky)')
    expect(await run(['sessions', 'rename', 'done', '--default'])).toMatchObject({ code: 0 })
    expect(await titles(place)).toContainEqual(['done', 'done?'])
  })

  test.each([
    [['done'], 2, 'Pass one title in quotes'],
    [['done', 'The', 'sky'], 2, 'Pass one title in quotes'],
    [['done', 'The sky', '--default'], 2, 'Pass one title in quotes'],
    [['done', ''], 2, 'this one is empty'],
    [['dune', 'The sky'], 2, "There is no session 'dune' here. Did you mean 'done'?"],
  ])('%j is refused', async (args, code, words) => {
    const { run } = await two()
    expect(await run(['sessions', 'rename', ...args])).toMatchObject({
      code,
      out: '',
      err: expect.stringContaining(words),
    })
  })
})

describe('sessions delete', () => {
  test.each([
    ['y\n', 'Deleted done.', 1],
    ['n\n', 'Nothing was deleted.', 2],
    ['\n', 'Nothing was deleted.', 2],
  ])('asks at a terminal, and %j is: %s', async (input, shown, left) => {
    const { run } = await two()
    const { code, out } = await run(['sessions', 'delete', 'done'], { tty: true, input })
    expect(code).toBe(0)
    expect(out).toBe(`Delete session done (done?) with its 5 records? (y)es, (n)o: ${shown}\n`)
    expect(rows((await run(['sessions', 'list', '--json'])).out)).toHaveLength(left)
  })

  test('needs --yes without a terminal', async () => {
    const { run } = await two()
    const refused = await run(['sessions', 'delete', 'done'])
    expect(refused).toMatchObject({ code: 2, out: '', err: expect.stringContaining('Use --yes') })
    expect(await run(['sessions', 'delete', 'done', '--yes'])).toMatchObject({
      code: 0,
      out: 'Deleted done.\n',
    })
    expect((await run(['sessions', 'delete', 'done', '--yes'])).code).toBe(2)
  })

  test('leaves a session in use', async () => {
    const { run, withStore } = await two()
    await withStore((store) => store.acquire('done', { holder: 'run 4711', ttlMs: 60_000 }))
    const { code, err } = await run(['sessions', 'delete', 'done', '-y'])
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('in use by run 4711') })
  })
})

describe('commands on sessions refuse', () => {
  test.each([
    [['show', 'don'], "There is no session 'don' here. Did you mean 'done'?"],
    [['export', 'WAIT'], "Did you mean 'waits'?"],
    [['fork', 'zzzzzz'], "'statewright sessions list' shows the ids."],
    [['delete', 'dune', '-y'], "Did you mean 'done'?"],
    [['show', 'done', 'waits'], "Unexpected argument 'waits'."],
    [['show', 'done', '--at', '9'], "--at: session 'done' has 5 records; there is no record 9."],
    [['fork', 'done', '--at', '0'], '--at must be a whole number of at least 1'],
    [['fork', 'done', '--at', '6'], 'has 5 records; there is no record 6.'],
    [['list', 'done'], "Unexpected argument 'done'."],
    [['list', '--limit', '-1'], "'-1' looks like an option"],
    [['export', 'done', '--force'], '--force needs --out FILE.'],
    [['export', 'done', '--out', 'no/file'], "there is no folder for 'no/file'."],
    [['export', 'done', '--out', '.'], "'.' already exists"],
    [['lst'], "Unknown command 'sessions lst'. Did you mean 'sessions list'?"],
  ])('%j', async (args, message) => {
    const { run } = await two()
    const { code, out, err } = await run(['sessions', ...args])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
    expect(err).not.toMatch(/^\s+at /m)
  })
})

describe('a damaged store', () => {
  const values = [
    "'7'",
    "'null'",
    "'{}'",
    "'[]'",
    '\'"text"\'',
    "'{'",
    "x'ff'",
    'NULL',
    '9e18',
    '-1',
    '\'{"title":7}\'',
  ]
  const columns = [
    ...['summary', 'summed_up_at', 'token', 'holder', 'process', 'expires_at'].map((column) => [
      'sessions',
      column,
    ]),
    ...['at', 'type', 'data', 'checksum', 'written_at'].map((column) => ['records', column]),
  ] as const

  longTest('lists every session, with one sentence about the problem of the damaged one', async () => {
    const { run, cwd } = await two()
    const file = join(cwd, 'kept', 'sessions.db')
    const whole = await readFile(file)
    for (const [table, column] of columns) {
      for (const value of values) {
        await writeFile(file, whole)
        const database = new Database(file)
        const where = table === 'sessions' ? "id = 'waits'" : "session_id = 'waits' AND seq = 2"
        let isTaken = true
        try {
          database.exec(`UPDATE ${table} SET ${column} = ${value} WHERE ${where}`)
          // The row provides the data that the log lacks.
          if (table === 'sessions') database.exec(`UPDATE records SET data = '' WHERE session_id = 'waits'`)
        } catch {
          isTaken = false // SQLite rejects text in numeric columns.
        }
        database.close()
        if (!isTaken) continue
        const what = `${table}.${column} = ${value}`
        const list = await run(['sessions', 'list'])
        expect({ what, err: list.err, code: list.code }).toEqual({ what, err: '', code: 0 })
        expect(list.out).toMatch(/^waits /m)
        expect(list.out).toMatch(/^done +COMPLETED/m)
        expect(rows((await run(['sessions', 'list', '--json'])).out)).toHaveLength(2)
        for (const command of [
          ['sessions', 'show', 'waits'],
          ['sessions', 'show', 'waits', '--events'],
          ['sessions', 'export', 'waits'],
          ['sessions', 'fork', 'waits'],
          ['resume', 'waits'],
        ]) {
          const { code, err } = await run(command)
          expect({ what, command, code: [0, 2, 4].includes(code), is: code }).toMatchObject({ code: true })
          if (code === 2) expect(err).toMatch(/record \d is damaged|in use by/)
        }
      }
    }
  })
})

test('listing sessions in an empty folder creates no store', async () => {
  const { run, cwd } = await createPlace()
  expect((await run(['sessions', 'list'])).out).toContain('There are no sessions in the store ')
  for (const args of [
    ['show', 'a'],
    ['export', 'a'],
    ['fork', 'a'],
    ['delete', 'a', '-y'],
  ]) {
    expect((await run(['sessions', ...args])).err).toContain('The store is empty.')
  }
  expect((await run(['resume', 'a'])).err).toContain('The store is empty.')
  expect(await readdir(cwd)).toEqual([])
})
