import type { AgentContext } from '../../../machines/agent/context.js'
import type { BatchCall } from '../../../machines/agent/batch-calls.js'
import { listAnswerableCalls } from '../../../machines/agent/to-result.js'
import { isRestState } from '../../../machines/agent/run-result.js'
import { UsageError } from '../base/errors.js'
import { getChildSessionId } from './child-session.js'
import { applyRecord, createFoldedSession, type FoldedSession } from './fold-session.js'
import type { SessionStore } from './store/store.js'

/** Whether the sub-agent of a call rests, and the call waits for it to be answered or resumed. */
export function isWaitingForChild({ questions, result, started }: BatchCall): boolean {
  return questions !== undefined && result === undefined && !started
}

/**
 * Where the sub-agent of a call stood when it asked what the call waits for: at the last such record that is not later than
 * `at`, in milliseconds since the epoch.
 * @throws {UsageError} `nothing_to_resume` where its log has no such record
 */
export async function readSessionAtQuestion(
  store: SessionStore,
  context: AgentContext,
  { id, name, questions = [] }: BatchCall,
  at: number,
): Promise<FoldedSession> {
  const sessionId = getChildSessionId(context, id)
  const records = await store.read(sessionId)
  const folded = createFoldedSession(records)
  const wanted = questions.map(getQuestionKey).toSorted().join()
  let found: FoldedSession | null = null
  for (const record of records) {
    applyRecord(folded, record, sessionId)
    const child = folded.run?.context
    const isResting = child !== undefined && isRestState(child.state)
    if (
      isResting &&
      record.at <= at &&
      listAnswerableCalls(child).map(getQuestionKey).toSorted().join() === wanted
    )
      found = { ...folded }
  }
  if (found) return found
  throw new UsageError(
    'nothing_to_resume',
    `Call '${id}' waits for its sub-agent '${name}', whose session '${sessionId}' does not stand at that question. Fork at a ` +
      'record before that call began, or after it has ended.',
    id,
  )
}

const getQuestionKey = ({
  callId,
  fingerprint,
}: {
  callId: string
  fingerprint?: string | undefined
}): string => `${callId} ${fingerprint ?? ''}`
