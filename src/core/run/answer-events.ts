import type { SnapshotFrom } from 'xstate'
import { valueOr } from '../base/maybe-promise.js'
import { omitUndefined } from '../../../guards/lib/json.js'
import { findAnswerFault, type Vote } from '../../../machines/agent/approvals.js'
import type { AgentContext, ControlEvent } from '../../../machines/agent/context.js'
import type { UnansweredCall, PendingCall } from '../../../machines/agent/run-result.js'
import type { Principal } from '../../../machines/agent/principal.js'
import {
  findAnswerableCall,
  listAnswerableCalls,
  findOwnApproval,
  isAnsweredBy,
} from '../../../machines/agent/questions.js'
import { inputError, UsageError } from '../base/errors.js'
import { expectArgument, optionsRule } from '../base/values.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import { fitArguments, readJson } from '../tools/parse-arguments.js'
import type { Tool, ToolsByName } from '../tools/tool.js'
import type { ToolSet } from '../tools/tool-set.js'
import { formatResult } from '../tools/tool-content.js'
import { readElicitationAnswer } from '../sessions/elicitation-answer.js'
import { formatWakeTime, readTime } from '../base/clock.js'
import {
  checkApprovalGrants,
  type GrantOptions,
  outlivesRun,
  readGrant,
  withToolDigest,
} from '../sessions/grant-input.js'
import type { AnswerMessage } from '../sessions/inbox/session-message.js'
import { readSender, type SentBy } from '../sessions/principal.js'

export interface AnswerOptions extends SentBy {
  /** The fingerprint from `pending` or `approval_requested`. */
  fingerprint?: string | undefined
  /** The message that made the call. A repeated call is in a different message. */
  messageId?: string | undefined
  /** Why a call is approved. It is stored in the log, but the model does not read it. */
  why?: string | undefined
  /** A grant that also approves later calls to the tool. Without `when`, the grant covers exactly these arguments. */
  grant?: GrantOptions | undefined
}

/**
 * A call, given by its id or as an object from `pending` or `approval_requested`. An object refers to exactly that
 * call.
 */
export type CallReference =
  | string
  | (Pick<UnansweredCall, 'callId' | 'fingerprint' | 'messageId'> & { name?: string })

/** The type of edited arguments, which is the input type of the tool, or `unknown` for an unknown tool. */
export type EditOf<Tools, Call> = [Tools] extends [never]
  ? unknown
  : [OwnName<Call>] extends [never]
    ? unknown
    : Tools[OwnName<Call> & keyof Tools]

/** Tools of sub-agents have separate names. */
type OwnName<Call> = Call extends { name: infer Name; path?: never } ? Name : never

/** @throws {UsageError} `invalid_input` for a value that does not name a call */
export function parseAnswerTarget(
  call: CallReference,
  options: AnswerOptions = {},
): Pick<AnswerOptions, 'fingerprint' | 'messageId'> & { callId: string; by?: Principal } {
  expectArgument('Answer options', options, optionsRule)
  const { fingerprint, messageId, why } = options
  if (why !== undefined && typeof why !== 'string')
    throw inputError("'why' in answer options must be a string.", 'why')
  const sent = readSender(options, 'Answer options')
  if (typeof call === 'string') return { callId: call, fingerprint, messageId, ...sent }
  if (typeof call?.callId !== 'string')
    throw inputError(
      "An answer names its call: pass its callId, or the call itself from result.pending or from the event 'approval_requested'.",
      'callId',
    )
  return {
    callId: call.callId,
    fingerprint: fingerprint ?? call.fingerprint,
    messageId: messageId ?? call.messageId,
    ...sent,
  }
}

/**
 * The call that waits for this answer, either while the run rests or while other calls run.
 * @throws {UsageError} `already_answered` for a second answer, `unknown_call` if no call with this id waits for an
 * answer, `stale_answer` if the call has changed
 */
export function getAwaitedCall(
  context: AgentContext | undefined,
  callId: string,
  needs: PendingCall['needs'],
  { fingerprint, messageId }: Pick<AnswerOptions, 'fingerprint' | 'messageId'> = {},
): PendingCall {
  const call = context && findAnswerableCall(context, callId, needs)
  if (call === undefined) throw notAwaitedError(context, callId, needs)
  const stale = (text: string): UsageError => new UsageError('stale_answer', `${text} Ask again.`, callId)
  if (fingerprint !== undefined && fingerprint !== call.fingerprint)
    throw stale(
      `The answer to call '${callId}' is for outdated arguments. The call is now ${call.name}(${call.arguments}).`,
    )
  if (messageId !== undefined && messageId !== call.messageId)
    throw stale(
      `The answer is for call '${callId}' of message ${messageId}. The model has since made the same call again, in message ${call.messageId}.`,
    )
  return call
}

function notAwaitedError(
  context: AgentContext | undefined,
  callId: string,
  needs: PendingCall['needs'],
): UsageError {
  const calls = context ? listAnswerableCalls(context) : []
  const waiting = calls.filter((call) => isAnsweredBy(call.needs, needs)).map((call) => call.callId)
  const others =
    waiting.length > 0
      ? `Waiting: ${waiting.join(', ')}.`
      : `The run is ${context?.state ?? 'RUNNING'} and no call is waiting for this kind of answer.`
  return context && wasAnswered(context, callId)
    ? new UsageError('already_answered', `Call '${callId}' was already answered. ${others}`, callId)
    : new UsageError('unknown_call', `Call '${callId}' is not waiting for this answer. ${others}`, callId)
}

function wasAnswered({ calls }: AgentContext, callId: string): boolean {
  return calls.some(({ id, needs, result, approved, questions = [] }) => {
    const isDone = needs !== 'nobody' && needs !== 'child' && result !== undefined
    if (id === callId) return isDone || approved === true
    return questions.some((question) => `${id}/${question.callId}` === callId && question.answer)
  })
}

export type AnswerEvent = Extract<ControlEvent, { type: 'APPROVE' | 'REJECT' | 'TOOL_OUTPUT' }>

export type ReceivingRun = Pick<SnapshotFrom<AgentMachine>, 'status' | 'context' | 'matches'>

/**
 * Checks whether a run can accept a message now, according to its own clock.
 * @throws {UsageError} `run_ended`, `not_waiting`, `unknown_call`, `already_answered`, `stale_answer`, `not_an_approver`,
 * `approval_expired`, `unknown_grant`
 */
export function checkMessageFits(
  event: ControlEvent,
  run: ReceivingRun,
  sessionId: string,
  now: number,
): void {
  if (event.type === 'REVOKE' && 'grant' in event) {
    const { grants = [], sessionId: of } = run.context
    const text = `Session '${of}' has no grant '${event.grant}'. List its grants with agent.replay('${of}').`
    if (!grants.some(({ id }) => id === event.grant)) throw new UsageError('unknown_grant', text, event.grant)
  }
  if (outlivesRun(event)) return
  checkNotEnded(run, sessionId)
  if (event.type === 'REVOKE' && 'callId' in event && findOwnApproval(run.context, event) === undefined) {
    const text = `This sender has no revocable approval for call '${event.callId}'. A call that has started cannot be stopped this way.`
    throw new UsageError('unknown_call', text, event.callId)
  }
  const state = run.context.state ?? 'RUNNING'
  if (event.type === 'RESUME' && !canResume(run))
    throw notWaitingError(sessionId, `is ${state}, and no pause was requested`)
  if (event.type === 'REPLY' && !run.matches({ WAITING_FOR_INPUT: 'message' }))
    throw notWaitingError(sessionId, `is ${state} and is not waiting for a message`)
  if (event.type !== 'APPROVE' && event.type !== 'REJECT' && event.type !== 'TOOL_OUTPUT') return
  const needs = event.type === 'TOOL_OUTPUT' ? 'client' : 'approval'
  const call = getAwaitedCall(run.context, event.callId, needs, event)
  if (event.type === 'TOOL_OUTPUT') return
  checkVote(event, call, run.context, now)
  if (event.type === 'APPROVE' && event.grant) checkApprovalGrants(run.context, event)
}

interface AnswerScene {
  /** The time of the run. */
  now: number
  tools: ToolSet
  /** The method to name in errors. */
  where: string
  /** Whether the event names the message of its call, because it may be applied later. */
  isBound?: boolean
}

/**
 * The event for an answer, if a call waits for it and the sender may give it. An Error becomes an error result. With an
 * asynchronous schema, `problem` resolves with the error of the edited arguments, or null.
 * @throws {UsageError} `invalid_answer` for an elicitation, as `getAwaitedCall` and `checkVote`
 */
export function createAnswerEvent(
  answer: AnswerMessage,
  context: AgentContext | undefined,
  { now, tools, where, isBound }: AnswerScene,
): { event: AnswerEvent; call: PendingCall; problem?: Promise<UsageError | null> } {
  const isOutput = answer.type === 'toolOutput'
  const call = getAwaitedCall(context, answer.callId, isOutput ? 'client' : 'approval', answer)
  const { callId, fingerprint, messageId, elicitation } = call
  const known = context as AgentContext
  const sent = readSender(answer, answer.type)
  if (isOutput) {
    const { value } = answer
    const isError = !elicitation && (answer.isError === true || value instanceof Error)
    const { content, media } = elicitation
      ? { content: readElicitationAnswer(elicitation, value), media: undefined }
      : formatResult(value instanceof Error ? value.message : value, known.config.toolCalls.maxResultChars)
    const given = {
      content,
      fingerprint,
      ...omitUndefined({ messageId, media }),
      ...(isError && { isError }),
    }
    return { event: { type: 'TOOL_OUTPUT', callId, ...given, ...sent }, call }
  }
  const target = { callId, fingerprint, ...(isBound && omitUndefined({ messageId, ...sent })) }
  if (answer.type === 'reject') {
    const event = { type: 'REJECT' as const, ...target, why: answer.why ?? '', ...sent }
    checkVote(event, call, known, now)
    return { event, call }
  }
  const { why, grant, editedInput } = answer
  const event = {
    type: 'APPROVE' as const,
    ...target,
    ...(why !== undefined && { why }),
    ...(grant !== undefined && { grant: withToolDigest(readGrant(grant, where, now), tools.get(call.name)) }),
    ...sent,
  }
  const isEdited = editedInput !== undefined
  const vote = isEdited ? { ...event, arguments: '' } : event
  checkVote(vote, call, known, now)
  if (vote.grant) checkApprovalGrants(known, vote)
  if (!isEdited) return { event, call }
  const { text, ...checked } = parseEditedArguments(editedInput, call, tools)
  return { event: { ...event, arguments: text }, call, ...checked }
}

/**
 * Checks whether the sender may decide on the call. `now` is the time of the run.
 * @throws {UsageError} `not_an_approver`, `already_answered` for a second approval by the same person,
 * `approval_expired`
 */
export function checkVote(vote: Vote, call: PendingCall, { requesters }: AgentContext, now: number): void {
  const fault = findAnswerFault(call, vote, requesters, now)
  if (fault === null) return
  const { callId, approvers, expiresAt = 0 } = call
  const who = vote.by === undefined ? 'A sender without by' : `'${vote.by.id}'`
  const why: Record<typeof fault, string> = {
    approval_expired: `The question about call '${callId}' expired at ${formatWakeTime(expiresAt)}, and the call does not run.`,
    already_answered: `${who} has already approved call '${callId}'. Other people must approve it too.`,
    needs_others: `${who} may not edit the arguments of call '${callId}', because several people must approve it. Reject it with a reason instead.`,
    not_an_approver: `${who} may not approve or reject call '${callId}'. Its approvers are ${JSON.stringify(approvers)}.`,
  }
  throw new UsageError(fault === 'needs_others' ? 'not_an_approver' : fault, why[fault], callId)
}

export function canResume({ status, context }: Pick<ReceivingRun, 'status' | 'context'>): boolean {
  return status === 'active' && (context.state === 'PAUSED' || context.pausing !== false)
}

export function checkNotEnded({ status, context }: ReceivingRun, sessionId: string): void {
  if (status === 'active') return
  const text =
    `The run of session '${sessionId}' is ${context.state ?? 'RUNNING'} and accepts no more messages. Send a new one with ` +
    `agent.run(input, { session: '${sessionId}' }).`
  throw new UsageError('run_ended', text, sessionId)
}

/** The error if no process holds the session and the session does not wait for this message. */
export function notWaitingError(sessionId: string, why: string): UsageError {
  const text =
    `Session '${sessionId}' ${why}. Read its state with agent.replay('${sessionId}'), and resume an interrupted run with ` +
    `agent.resume('${sessionId}').`
  return new UsageError('not_waiting', text, sessionId)
}

type EditedCall = Pick<PendingCall, 'callId' | 'name' | 'path' | 'hosted'>

/**
 * Validates arguments edited by a person and returns them as JSON text. Errors are reported to the person, because the
 * model did not write the arguments and could not correct them. With an asynchronous schema, `problem` resolves with
 * the error or null.
 * @throws {UsageError} `invalid_input` for a value that is not JSON, or does not match the tool's schema
 */
export function parseEditedArguments(
  value: unknown,
  call: EditedCall,
  tools: ToolSet,
  refused: (call: EditedCall, problem: string) => UsageError = refusedApprovalError,
): { text: string; problem?: Promise<UsageError | null> } {
  if (call.hosted) {
    const why = 'The provider executes this call, so its arguments cannot be edited.'
    throw refused(call, `${why} Approve it unchanged, or reject it with a reason.`)
  }
  // A tool without required arguments would accept null as an empty object, which nobody has approved.
  if (value === null)
    throw refused(call, `The arguments of call '${call.callId}' are null, but must be an object.`)
  const text = toJsonText(value)
  if (text === undefined)
    throw refused(call, `The value for call '${call.callId}' cannot be serialized as JSON.`)
  const tool = findTool(call, tools)
  // For an unknown tool, the run reports the error to the model.
  if (tool === undefined) return { text }
  const parsed = fitArguments(tool, readJson(text))
  if (parsed instanceof Promise)
    return { text, problem: parsed.then((late) => (late.ok ? null : refused(call, late.message))) }
  if (!parsed.ok) throw refused(call, parsed.message)
  return { text }
}

function refusedApprovalError(call: EditedCall, problem: string): UsageError {
  const { callId } = call
  return inputError(
    `approve('${callId}'): the edited input was refused, and the call is still waiting. ${problem}`,
    callId,
  )
}

function toJsonText(value: unknown): string | undefined {
  return valueOr(() => JSON.stringify(value), undefined)
}

export function findTool({ name, path = [] }: EditedCall, tools: ToolSet): Tool | undefined {
  let known: ToolsByName | undefined = tools
  for (const through of path) known = known?.get(through)?.delegate?.tools
  return known?.get(name)
}

/** The time when a paused run continues. Defaults to now. */
export interface ResumeTime extends SentBy {
  at?: Date | number
}

/**
 * Creates the event that ends a pause or a sleep, or changes its date.
 * @throws {UsageError} `invalid_input` for invalid options or an invalid date
 */
export function toResumeEvent(options: ResumeTime): Extract<ControlEvent, { type: 'RESUME' }> {
  if (typeof options !== 'object' || options === null)
    throw inputError('resume(options): pass { at } with a date, { by }, or nothing.', 'options')
  const { at } = options
  const sent = readSender(options, 'resume()')
  if (at === undefined) return { type: 'RESUME', ...sent }
  const time = readTime(at)
  if (time !== null) return { type: 'RESUME', at: time, ...sent }
  throw inputError('resume({ at }): at must be a Date, or milliseconds since the epoch.', 'at')
}
