import { UsageError } from '../core/base/errors.js'
import { expectArgument, objectRule } from '../core/base/values.js'
import { type MachineRecord, openMachineRecord } from '../core/sessions/log/machine-record.js'
import { checkSessionId } from '../core/sessions/store/session-id.js'
import type { SessionStore } from '../core/sessions/store/store.js'
import { unknownSessionError } from '../core/sessions/store/store-error.js'
import type { ReplayPath, ReplayStep } from './replay-path.js'

/**
 * The path of a stored `statewright/durable` session, for `replay`. This turns a session into a test of the chart.
 * Events that had no effect are omitted. The path of a fork starts with the path of its source.
 *
 * @example
 * const path = await pathOf(store, 'claim-17')
 * const result = await replay(path, createMachineHarness(claims.machine))
 * @throws {UsageError} `other_session` for the session of an agent
 * @throws {StoreError} `unknown_session`, `corrupt_log`, `newer_log`
 */
export async function pathOf(store: SessionStore, sessionId: string): Promise<ReplayPath> {
  expectArgument('pathOf(store)', store, objectRule(['read'], 'a session store'))
  return { steps: await readSteps(store, checkSessionId(sessionId)) }
}

async function readSteps(store: SessionStore, id: string, to?: number): Promise<ReplayStep[]> {
  const records = await store.read(id, to === undefined ? {} : { to })
  const opened = records.map((record) => openMachineRecord(record, id))
  const [first] = opened
  if (first === undefined) throw unknownSessionError(id)
  if (first === null)
    throw new UsageError(
      'other_session',
      `Session '${id}' belongs to an agent. pathOf reads sessions of machines. Use recordSession for sessions of agents.`,
      id,
    )
  const steps = (opened as MachineRecord[]).filter(({ refused }) => refused === undefined).map(toStep)
  if (first.forkedFrom === undefined) return steps
  const { sessionId, seq } = first.forkedFrom
  return [...(await readSteps(store, sessionId, seq)), ...steps.slice(1)]
}

function toStep({ event, state: { value, status, output } }: MachineRecord): ReplayStep {
  return { event, state: { value: value as never, status }, ...(output !== undefined && { output }) }
}
