import type { AgentContext } from '../../../machines/agent/context.js'
import { UsageError } from '../base/errors.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { completeContext } from './log/complete-context.js'

/**
 * A snapshot of the machine that an app has kept itself, as this machine has it: what an earlier version did not know
 * has its default.
 *
 * @throws {UsageError} `invalid_snapshot` for what is none
 */
export function completeSnapshot<Snapshot extends object>(stored: Snapshot): Snapshot {
  const { context } = stored as { context?: unknown }
  const { runId, messages, calls } = isRecord(context) ? context : {}
  if (typeof runId !== 'string' || !Array.isArray(messages) || !Array.isArray(calls))
    throw new UsageError(
      'invalid_snapshot',
      'This is no snapshot of an agent. Pass what run.snapshot() or actor.getPersistedSnapshot() returned.',
      'snapshot',
    )
  return { ...stored, historyValue: {}, context: completeContext(context as unknown as AgentContext) }
}
