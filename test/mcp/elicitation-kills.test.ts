import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createAgent, type RunResult } from '../../src/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { createOneCallModel } from '../support/manual-model.js'
import { buildMcpAgents } from '../stores/child.js'
import { blockOf, nameRecord } from './page-block.js'
import { open } from './support.js'
import { runsAll, sampledKinds } from '../support/extent.js'

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url))
const script = path('servers/asks.mjs')
const accepted = { action: 'accept', content: { seat: '12A' } }

let built: ReturnType<typeof buildMcpAgents>
beforeAll(() => {
  built = buildMcpAgents()
})
afterAll(() => built.remove())

interface Line {
  call?: string
  inputResponses?: object
  done?: string
  answers?: object[]
}

/**
 * A run whose process is killed when its log has the given number of records, and the result after another
 * process resumes it.
 */
async function playKilled(era: 'modern' | 'earlier', records: number) {
  const folder = mkdtempSync(join(tmpdir(), 'asking-'))
  try {
    const args = [path('asking-run.mjs'), built.url, folder, era, script, String(records)]
    const { signal, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    if (signal === null) return { isKilled: false as const, stderr }
    const store = fileStore({ dir: join(folder, 'store') })
    const logged = store.get('s') === null ? [] : store.read('s').map(nameRecord)
    const env = { JOURNAL: join(folder, 'journal') }
    const server = await open({ command: process.execPath, args: [script, era], env, name: 'airline' })
    const toolCalls = { onInterrupted: 'approval' } as const
    const agent = createAgent({
      model: createOneCallModel('airline_book'),
      tools: [server],
      store,
      toolCalls,
    })
    const stored = store.get('s')
    const run =
      stored === null || stored.head === 0 ? agent.run('Go.', { session: 's' }) : await agent.resume('s')
    let result: RunResult = await run.result
    let interrupted = 0
    while (result.state === 'WAITING_FOR_INPUT')
      for (const call of result.pending) {
        if (call.needs === 'approval') interrupted += 1
        // A person checks whether the seat is booked before the call is repeated.
        if (call.needs !== 'approval') run.addToolOutput(call, accepted)
        else if (readJournal(env.JOURNAL).some((line) => line.done)) run.reject(call)
        else run.approve(call)
        result = await run.result
      }
    const content = result.messages.findLast(({ role }) => role === 'tool')?.content
    if (JSON.stringify(content).includes('Interrupted: ')) interrupted += 1
    const journal = readJournal(env.JOURNAL)
    const unlawful = await findUnlawful(store)
    return { isKilled: true as const, logged, state: result.state, interrupted, journal, unlawful }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function readJournal(file: string): Line[] {
  const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
  return lines.map((line) => JSON.parse(line) as Line)
}

const all = [1, 2, 3, 4, 5, 6, 7]
/** Every record of such a run. The sample covers the records around the question. */
const due = runsAll ? all : [4, 5]
const kills = { modern: due, earlier: due }
const revisions = { modern: '2026-07-28', earlier: '2025-11-25' }
const rows: string[] = []

describe.each(sampledKinds(['modern', 'earlier'] as const))(
  'a run that is killed at each record, with a server that is %s',
  (era) => {
    it('repeats no call and loses no answer', async () => {
      const deaths: string[] = []
      for (const records of kills[era]) {
        const played = await playKilled(era, records)
        if (!played.isKilled) throw new Error(`It was not killed at record ${records}: ${played.stderr}`)
        const { logged, journal, state, interrupted, unlawful } = played
        const again = journal.filter(({ inputResponses }) => inputResponses).length
        const done = journal.filter((line) => line.done)
        deaths.push(logged.at(-1) ?? '')
        expect([records, state, unlawful]).toEqual([records, 'COMPLETED', []])
        // A call interrupted before its server was asked is repeated, because a person allows it.
        const first =
          journal.filter(({ call, inputResponses }) => call && !inputResponses).length - interrupted
        expect([records, first <= 1, again <= 1]).toEqual([records, true, true])
        // In earlier revisions, a call with a pending elicitation dies with its process.
        const isLost = era === 'earlier' && (records === 4 || records === 5)
        const due = isLost ? [] : [{ done: 'book', answers: [accepted] }]
        expect([records, done]).toEqual([records, due])
        const death = `${records}: ${deaths.at(-1)}`
        const calls = `${journal.filter(({ call }) => call).length} | ${again} | ${interrupted} | ${done.length}`
        // The first two records are written together.
        if (logged.length === records) rows.push(`| ${revisions[era]} | ${death} | ${calls} |`)
      }
      expect(deaths).toEqual(expect.arrayContaining(['the question', 'the answer to the question']))
    }, 300_000)
  },
)

it('matches the table in docs/mcp.md: STATEWRIGHT_MCP_PAGE=write STATEWRIGHT_TESTS=all writes it', () => {
  const head =
    '| Server revision | Killed after record | Calls | Calls with the answer | Interrupted | Bookings |'
  const played = [head, '| --- | --- | --- | --- | --- | --- |', ...rows]
  expect(blockOf('clientKills', played)).toEqual(runsAll ? played : expect.arrayContaining(played))
})
