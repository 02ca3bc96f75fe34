import type { UIMessage } from 'ai'
import { isWorkState } from '../../machines/agent/run-result.js'
import { maskMessages } from '../../machines/agent/mask-uncleared.js'
import { withheldResult } from '../../machines/agent/screening.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import type { PendingCall } from '../../src/index.js'
import type { ReplayPath } from '../../src/testing/index.js'
import { createAnswerFold } from '../../src/ui/answer-fold.js'
import { toUIMessages } from '../../src/ui/index.js'
import { toApprovalId } from '../../src/web/approval-id.js'
import { type Turn, toTurn } from '../../src/web/chat-turn.js'
import { isTurnOpening } from '../../src/core/sessions/find-turn.js'
import { generatedPaths } from '../agui/paths.js'
import { sampledKinds } from '../support/extent.js'
import { followPath } from '../support/follow-path.js'
import { messageOf, protocol } from './client.js'
import { partsOf } from './parts.js'

// All of them: npm run suite -- chat. `.ci/run` takes two inputs, and `npm test` one.
const sample = sampledKinds(['with result shields', 'interactive'])
const paths =
  process.env.STATEWRIGHT_SUITE === 'chat'
    ? generatedPaths()
    : generatedPaths(...sample).filter((_, i) => i % 6 === 3)

/**
 * The live agent follows a path, and a page follows it from rest to rest. At each rest, the client's messages must match the
 * log.
 */
async function follow(path: ReplayPath): Promise<void> {
  let turn: Turn | null = null
  let message: UIMessage | undefined
  await followPath(path, async (events, context) => {
    // A message at a rest starts a separate answer.
    const isAnew = events.some((event) => event.type === 'user_message' && isTurnOpening(event.message))
    if (isAnew) message = undefined
    const fold = createAnswerFold({ protocol, turn: isAnew ? null : turn, showsTurn: false })
    const chunks = [...fold.begin(), ...events.flatMap((event) => fold.handleEvent(event)), ...fold.end()]
    message = answered(await messageOf(chunks as never, message), listAnswerableCalls(context))
    turn = toTurn(context)
    const { state, calls } = context
    const approved = calls.flatMap((call) => (call.approved && !call.result ? [call.id] : []))
    const shown = toUIMessages(maskMessages(context), listAnswerableCalls(context), {
      protocol,
      approved,
    }).at(-1)
    // A path may end during a batch, before shields have checked it, or before any answer.
    if (isWorkState(state) || shown?.role !== 'assistant') return
    const withheld = shown.parts.flatMap((part) =>
      'toolCallId' in part && 'errorText' in part && part.errorText === withheldResult
        ? [part.toolCallId]
        : [],
    )
    const requests = listAnswerableCalls(context).map(toApprovalId)
    // A page keeps the terms of answered requests.
    const isTold = (part: { type?: string; id?: string; toolCallId?: string }): boolean =>
      part.type === 'data-approval'
        ? requests.includes(part.id ?? '')
        : !withheld.includes(part.toolCallId ?? '')
    expect(partsOf(message).filter(isTold)).toEqual(partsOf(shown).filter(isTold))
  })
}

/** The client records its answers. */
function answered(message: UIMessage | undefined, open: readonly PendingCall[]): UIMessage | undefined {
  const parts = message?.parts.map((part) => {
    const isOpen =
      !('toolCallId' in part) ||
      open.some(({ callId, needs }) => callId === part.toolCallId && needs === 'approval')
    const wasAsked = 'state' in part && part.state === 'approval-requested'
    return wasAsked && !isOpen ? { ...part, state: 'approval-responded' } : part
  })
  return message && ({ ...message, parts } as UIMessage)
}

test.each(paths.map((path, i) => [`${i + 1}. with ${path.input}: ${path.name}`, path] as const))(
  'an AI SDK page follows, %s',
  (_, path) => follow(path),
)
