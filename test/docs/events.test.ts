import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { type AgentEvent, defineTool } from '../../src/index.js'
import { stage } from '../support/play.js'
import { call, text } from '../support/tools.js'
import { root } from './snippets.js'

const document = readFileSync(`${root}docs/events.md`, 'utf8')

/** The lines of the tree in order, each with its event and description. */
const tree = Array.from(
  (/^## Order of events$[^]*?```text\n([^]*?)```/m.exec(document)?.[1] ?? '').matchAll(
    /^[│├└─ ]*(\w+)( …)?(?: {2,}(.*))?$/gm,
  ),
  ([, type = '', many, note = '']) => ({ type, isMany: many !== undefined, note }),
)

/** One line per event. The chunks of one attempt are merged. */
function mergeChunks(events: readonly AgentEvent[]): AgentEvent[] {
  return events.filter(
    (event, i) =>
      (event.type !== 'stream_chunk' && event.type !== 'tool_call_delta') ||
      events[i - 1]?.type !== event.type ||
      (event.type === 'stream_chunk' && event.reset),
  )
}

async function approvedTransfer(): Promise<AgentEvent[]> {
  const transfer = defineTool({
    name: 'transfer',
    description: 'Transfers money.',
    input: z.object({}),
    needsApproval: true,
    execute: (_input, { progress }) => {
      progress('half')
      return 'sent'
    },
  })
  const limited = { status: 429, error: { message: 'Slow down.' }, retryAfter: 1 }
  const turns = [limited, { ...call('transfer'), text: 'Sending it.' }, text('It is sent.')]
  const play = (await stage(turns, { tools: [transfer] })).run('Send it.').skipBackOff()
  const { pending = [] } = await play.rest()
  for (const one of pending) play.run.approve(one)
  await play.end(3)
  return play.events
}

test('a run emits its events in the order of the tree', async () => {
  const events = mergeChunks(await approvedTransfer())
  expect(events.map(({ type }) => type)).toEqual(tree.map(({ type }) => type))
  expect(tree.filter(({ isMany }) => isMany).map(({ type }) => type)).toEqual([
    'stream_chunk',
    'stream_chunk',
    'tool_call_delta',
    'stream_chunk',
  ])
})

test('the statements of the tree about an event are true', async () => {
  const events = mergeChunks(await approvedTransfer())
  for (const [i, { type, note }] of tree.entries()) {
    const event = events[i]
    if (event?.type !== type) throw new Error(`Line ${i + 1} is no ${type}.`)
    if (event.type === 'state_changed') {
      const [, from, to] = /(?:(\w+) )?→ (\w+)/.exec(note) ?? []
      expect({ note, to: event.to }).toEqual({ note, to })
      if (from !== undefined) expect({ note, from: String(event.from) }).toEqual({ note, from })
    }
    if (event.type === 'step_started') expect(note).toMatch(new RegExp(`^${event.stepType}`))
    if (event.type === 'step_started' && event.stepType === 'inference')
      expect(note).toContain(`attempt ${event.attempt}`)
    if (event.type === 'step_completed' && note !== '') expect(note).toContain(`outcome: ${event.outcome}`)
    if (event.type === 'stream_chunk' && note.includes('reset')) expect(event.reset).toBe(true)
    if (event.type === 'retry') expect(note).toContain(`attempt ${event.attempt}`)
  }
})

test('a run that fails emits an error between its last state and its end', async () => {
  const play = (await stage([{ status: 401, error: { message: 'No such key.' } }])).run()
  await play.run.result
  expect(play.events.map(({ type }) => type).slice(-3)).toEqual(['state_changed', 'error', 'run_ended'])
})

test('the table lists exactly the events', () => {
  const [, rows = ''] = /\| Event \| Meaning \|\n[^\n]*\n([^]*?)\n\n/.exec(document) ?? []
  const named = rows.split('\n').flatMap((row) => {
    const [, cell = ''] = row.split('|')
    return Array.from(cell.matchAll(/`(\w+)/g), ([, type = '']) => type)
  })
  const source = readFileSync(`${root}machines/agent/announcements.ts`, 'utf8')
  const declared = Array.from(source.matchAll(/type: '(\w+)'/g), ([, type = '']) => type)
  expect(declared.length).toBeGreaterThan(15)
  expect([...named].sort()).toEqual([...new Set(declared)].sort())
})
