import { formatWakeTime } from '../../core/base/clock.js'
import { parseJsonOr, readProperty } from '../../core/base/json.js'
import { describeError } from '../../core/base/errors.js'
import { escapeInvisible, formatArgumentsJson, formatCallPath } from '../../core/format/format-call.js'
import { readElicitationAnswer } from '../../core/sessions/elicitation-answer.js'
import type { Elicitation, PendingCall } from '../../../machines/agent/run-result.js'
import { sha256 } from '../../../guards/lib/sha256.js'
import { type SessionMessage, toTarget } from '../../core/sessions/inbox/session-message.js'

export type Question = {
  key: string
  about: string
  /** Whether a form can show the complete question. */
  fitsForm: boolean
} & ({ kind: 'call'; call: PendingCall } | { kind: 'pause' })

/** A message for the session, `left` to answer later, or an error. */
export type FormAnswer = { message: SessionMessage } | 'left' | { fault: string }

/** The questions from a resting run, in call order. A pause has no id, so its key is the `head` of the log. */
export function listQuestions(
  { state, pending = [], why }: { state: string; pending?: readonly PendingCall[] | undefined; why: string },
  head: number,
): Question[] {
  if (state === 'PAUSED') {
    const about = showText(`The run is paused. ${why}`.trim())
    return [{ kind: 'pause', key: `pause@${head}`, about, fitsForm: true }]
  }
  return pending.map((call) => {
    const { callId, fingerprint, messageId = '' } = call
    // Unique even if a model repeats a call with the same id.
    const key = `${callId}@${sha256(`${messageId}\n${fingerprint}`).slice(0, 16)}`
    return { kind: 'call', call, key, ...describeCall(call) }
  })
}

/** Longer arguments are not shown in a form, because people must approve only content that they have read. */
const maxShownChars = 20_000

function describeCall(call: PendingCall): Pick<Question, 'about' | 'fitsForm'> {
  const { needs, interrupted, path, elicitation, reason, expiresAt } = call
  const name = formatCallPath(call)
  if (elicitation) {
    const { server, message, url } = elicitation
    const about = `${showText(server)}, which ${name} belongs to, asks: ${showText(message)}${url ? ` ${showText(url)}` : ''}`
    return { about, fitsForm: true }
  }
  const full = formatArgumentsJson(call.arguments)
  const fitsForm = full.length <= maxShownChars
  const shown = fitsForm ? full : `${full.length} characters, too many for this form`
  const by = path ? ' in a sub-agent' : ''
  const doubt = interrupted ? ' It was interrupted and may already have taken effect.' : ''
  const why = reason === undefined ? '' : ` ${showText(reason)}`
  const until = expiresAt === undefined ? '' : ` The request expires at ${formatWakeTime(expiresAt)}.`
  const about =
    needs === 'approval'
      ? `The agent wants to call ${name}(${shown})${by}.${why}${doubt}${until}`
      : `The agent needs the result of ${name}(${shown})${by}, which must run on your side.${doubt}`
  return { about, fitsForm }
}

/** Escapes characters that are invisible or change the direction of text. Line breaks are kept. */
const showText = (text: string): string => text.split('\n').map(escapeInvisible).join('\n')

export function toInputRequest(question: Question, fault?: string) {
  const message = fault === undefined ? question.about : `${showText(fault)} ${question.about}`
  const params = { mode: 'form' as const, message, requestedSchema: createForm(question) }
  return { method: 'elicitation/create', params }
}

function createForm(question: Question): object {
  if (question.kind === 'pause')
    return toSchema({ decision: { type: 'string', title: 'Decision', enum: ['resume', 'stop'] } })
  const { needs, elicitation } = question.call
  if (needs === 'approval') {
    const description = 'The agent reads this when you reject the call.'
    return toSchema({
      confirm: { type: 'boolean', title: 'Approve the call' },
      why: { type: 'string', title: 'Reason', description },
    })
  }
  if (elicitation?.mode === 'form') return elicitation.schema
  if (elicitation) return toSchema({ confirm: { type: 'boolean', title: 'Open the page' } })
  return toSchema({
    result: { type: 'string', title: 'Result', description: 'Text, or JSON.' },
    failed: { type: 'boolean', title: 'It failed', default: false },
  })
}

/** A form whose first field is required. */
function toSchema(properties: Record<string, object>): object {
  return { type: 'object', properties, required: Object.keys(properties).slice(0, 1) }
}

/** Converts an untrusted answer from a client into a message for the session. */
export function readFormAnswer(question: Question, answer: unknown): FormAnswer {
  const [action, content] = ['action', 'content'].map((key) => readProperty(answer, key))
  if (action === 'cancel') return 'left'
  if (action === 'decline') return declineQuestion(question)
  if (action !== 'accept') return { fault: "The answer needs an action: 'accept', 'decline' or 'cancel'." }
  const form = (typeof content === 'object' && content !== null ? content : {}) as Record<string, unknown>
  if (question.kind === 'pause') {
    if (form['decision'] === 'resume') return { message: { type: 'resume' } }
    if (form['decision'] === 'stop') return { message: { type: 'cancel' } }
    return { fault: "The decision must be 'resume' or 'stop'." }
  }
  const call = toTarget(question.call)
  if (question.call.needs === 'approval') {
    const { confirm, why, grant } = form
    if (grant !== undefined) return { fault: 'grant is not allowed. A form approves one call.' }
    const reason = typeof why === 'string' && why.trim() !== '' ? { why } : {}
    if (typeof confirm !== 'boolean')
      return { fault: 'confirm must be true to approve the call, or false to reject it.' }
    return { message: { type: confirm ? 'approve' : 'reject', ...call, ...reason } }
  }
  const { elicitation } = question.call
  if (elicitation) return readElicitation(call, elicitation, form)
  const { result, failed } = form
  if (typeof result !== 'string') return { fault: 'The result must be text or JSON.' }
  const value = parseJsonOr(result, result)
  return { message: { type: 'toolOutput', ...call, value, ...(failed === true && { isError: true }) } }
}

function readElicitation(
  call: ReturnType<typeof toTarget>,
  elicitation: Elicitation,
  form: Record<string, unknown>,
): FormAnswer {
  const hasPage = elicitation.mode === 'url'
  if (hasPage && typeof form['confirm'] !== 'boolean')
    return { fault: 'confirm must be true to open the page, or false to decline.' }
  const value =
    hasPage && form['confirm'] === false ? { action: 'decline' } : { action: 'accept', content: form }
  try {
    readElicitationAnswer(elicitation, value)
  } catch (error) {
    return { fault: describeError(error) }
  }
  return { message: { type: 'toolOutput', ...call, value } }
}

function declineQuestion(question: Question): FormAnswer {
  // Declining to resume leaves the run unchanged.
  if (question.kind === 'pause') return 'left'
  const call = toTarget(question.call)
  if (question.call.elicitation)
    return { message: { type: 'toolOutput', ...call, value: { action: 'decline' } } }
  if (question.call.needs === 'approval') return { message: { type: 'reject', ...call } }
  const value = 'The user declined to carry this out.'
  return { message: { type: 'toolOutput', ...call, value, isError: true } }
}
