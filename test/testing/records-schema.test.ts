import { readdirSync, readFileSync } from 'node:fs'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentMachineEvent } from '../../machines/agent/context.js'
import { openRecord } from '../../src/core/sessions/log/log-record.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import type { StoredCase } from '../fixtures/sessions/stored-case.js'
import { faults, schema } from '../support/record-faults.js'

const folder = new URL('../fixtures/sessions/', import.meta.url)
const fixtures = readdirSync(folder, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))
  .flatMap(({ name }) => readdirSync(new URL(`${name}/`, folder)).map((file) => `${name}/${file}`))

test('the schema describes every event that the machine handles', () => {
  const { $defs: defs } = schema as {
    $defs: {
      AgentMachineEvent: { anyOf: { properties: { type: { const: string } | { enum: string[] } } }[] }
    }
  }
  const described = defs.AgentMachineEvent.anyOf.flatMap(({ properties: { type } }) =>
    'const' in type ? type.const : type.enum,
  )
  const handled = agentMachine.events.filter((type) => !type.endsWith('*'))
  expect(handled).toContain('xstate.error.actor.retrieval')
  expect(handled.filter((type) => !described.includes(type))).toEqual([])
})

test('the schema accepts every record of earlier versions, whole and as displayed', () => {
  const wrong: string[] = []
  let count = 0
  for (const file of fixtures) {
    const { sessions } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as StoredCase
    for (const [id, records] of Object.entries(sessions)) {
      const { records: shown, problem } = clearRecords(records, id)
      expect(problem).toBeNull()
      const whole = records.map((record, i) => ({
        seq: record.seq,
        at: record.at,
        ...openRecord(record, i, id),
      }))
      for (const record of [...shown, ...whole]) {
        count += 1
        wrong.push(
          ...faults(record)
            .slice(-1)
            .map((fault) => `${file} ${id} ${record.seq}: ${fault}`),
        )
      }
    }
  }
  expect(wrong).toEqual([])
  expect(count).toBeGreaterThan(250)
})

test('the schema refuses invalid records', () => {
  const start = { seq: 2, at: 0, type: 'start' }
  const event = { seq: 3, at: 0, type: 'event' }
  for (const record of [
    start,
    { ...start, input: {} },
    event,
    { ...event, event: { type: 'JUMP' } },
    { ...event, event: { type: 'STEER' } },
    { ...event, event: { type: 'STEER', text: 7 } },
    { ...event, event: { type: 'PAUSE' }, seq: 'three' },
    { seq: 1, at: 0, type: 'opened', version: 99 },
  ])
    expect({ record, isRefused: faults(record).length > 0 }).toEqual({ record, isRefused: true })
})

test('the schema accepts the screening of a rejection, and a hosted call that a sub-agent asks about', () => {
  const screening = { action: 'allow' as const, message: null, findings: [] }
  const used: AgentMachineEvent[] = [
    {
      type: 'xstate.done.actor.resultShields',
      output: [{ ...screening, content: 'Rejected by the user: No.', callId: 'c1', asInput: screening }],
      actorId: 'resultShields',
    },
    {
      type: 'CHILD_WAITING',
      callId: 'c1',
      questions: [
        {
          callId: 'm1',
          name: 'zip.shorten',
          arguments: '{}',
          needs: 'approval',
          fingerprint: 'f',
          hosted: true,
        },
      ],
    },
  ]
  const records = used.map((event) => ({ seq: 2, at: 0, type: 'event', event: { now: 0, ...event } }))
  expect(records.flatMap(faults)).toEqual([])
})
