import type { AgentContext, NewMessage, AgentMachineEvent } from '../../../machines/agent/context.js'
import type { AssistantMessage, Message, UserMessage } from '../../../machines/agent/messages.js'
import {
  rejectionPrefix,
  toList,
  type CallScreening,
  type InputScreening,
  unclearedInput,
  withheldAnswer,
  withheldArguments,
  withheldName,
  withheldResult,
} from '../../../machines/agent/screening.js'
import { listUnclearedInput, maskContext, maskMessages } from '../../../machines/agent/mask-uncleared.js'
import type { MachineRecord } from './log/machine-record.js'
import type { MachineState, RecordContent } from './log/log-record.js'
import { applyRecord, createFoldedSession } from './fold-session.js'
import type { LogRecord } from './store/store.js'

/** A log record without unscreened content. */
export type ClearedRecord = {
  seq: number
  /** Milliseconds since the epoch. */
  at: number
  /** Whether a placeholder replaces content that shields withheld or changed. */
  hidden?: true
} & RecordContent

/** A line of `sessions show ID --json`: a record of an agent's or a machine's session. */
export type ShownRecord =
  | ClearedRecord
  | ({ seq: number; at: number; type: 'opened' | 'snapshot' } & MachineRecord)

type EventOf<Type extends AgentMachineEvent['type']> = Extract<AgentMachineEvent, { type: Type }>
type ModelOutput = EventOf<'xstate.done.actor.model'>['output']
type Content = UserMessage['content']

interface PlacedRecord {
  record: LogRecord
  entry: RecordContent
  before: AgentContext | null
  after: AgentContext | null
}

/**
 * Replaces unscreened content in a log with its screened version. The result folds to the same state, unless a guard's
 * decision depended on removed content. `problem` is the error of the first unreadable record, which ends the result.
 */
export function clearRecords(
  records: readonly LogRecord[],
  sessionId: string,
): { records: ClearedRecord[]; problem: unknown } {
  const { placed, problem } = placeRecords(records, sessionId)
  return { records: splitAtBranches(placed).flatMap(clearBranch), problem }
}

/** Each part belongs to one branch, so that the transcript at its end contains the screened content. */
function splitAtBranches(placed: readonly PlacedRecord[]): PlacedRecord[][] {
  const parts: PlacedRecord[][] = [[]]
  for (const place of placed) {
    const { entry, before } = place
    if (entry.type === 'start' && entry.branch) {
      const messages = before?.messages.slice(0, entry.branch.keep) ?? []
      parts.push([{ ...place, before: before && { ...before, messages } }])
    } else if (entry.type === 'snapshot' && entry.selected !== undefined) parts.push([place])
    else parts.at(-1)?.push(place)
  }
  return parts
}

function placeRecords(
  records: readonly LogRecord[],
  sessionId: string,
): { placed: PlacedRecord[]; problem: unknown } {
  const folded = createFoldedSession(records)
  const placed: PlacedRecord[] = []
  for (const record of records) {
    try {
      const before = folded.run?.context ?? null
      const entry = applyRecord(folded, record, sessionId)
      placed.push({ record, entry, before, after: folded.run?.context ?? null })
    } catch (problem) {
      return { placed, problem }
    }
  }
  return { placed, problem: null }
}

/** Clears records of one branch. Its last state contains the screened content. */
function clearBranch(placed: readonly PlacedRecord[]): ClearedRecord[] {
  const last = placed.at(-1)?.after
  /** The transcript at the end of the log, without unscreened content. */
  const finalMessages = last ? maskMessages(last) : []
  const places = findPlaces(placed)

  return placed.map((place, i) => {
    const { seq, at } = place.record
    const entry = clearEntry(place, i)
    const isHidden = entry !== place.entry && JSON.stringify(entry) !== JSON.stringify(place.entry)
    return { seq, at, ...(isHidden && { hidden: true as const }), ...entry }
  })

  function clearEntry({ entry, before: earlier }: PlacedRecord, i: number): RecordContent {
    switch (entry.type) {
      case 'opened':
        return entry.state
          ? { ...entry, state: { ...entry.state, messages: clearMessages(entry.state.messages) } }
          : entry
      case 'start': {
        if (!entry.input.features?.inputShields) return entry
        return { ...entry, input: { ...entry.input, input: clearNew(entry, entry.input.input) } }
      }
      case 'snapshot':
        return { ...entry, state: clearState(entry.state) }
      default: {
        const event = clearEvent(entry.event, earlier, i)
        return event === entry.event ? entry : { ...entry, event }
      }
    }
  }

  function clearEvent(event: AgentMachineEvent, earlier: AgentContext | null, i: number): AgentMachineEvent {
    switch (event.type) {
      case 'xstate.done.actor.inputShields':
        return earlier ? { ...event, output: clearInputs(event, earlier) } : event
      case 'xstate.done.actor.outputShields': {
        const { action, content } = event.output
        const last = earlier ? finalMessages[earlier.messages.length - 1] : undefined
        const cleared = last?.role === 'assistant' ? last.content || last.refusal || '' : content
        return { ...event, output: { ...event.output, content: action === 'block' ? '' : cleared } }
      }
      case 'xstate.done.actor.callShields':
      case 'xstate.done.actor.resultShields': {
        const output = (toList(event.output) as readonly CallScreening[]).map((one) =>
          one.action === 'block' ? { ...one, content: '' } : one,
        )
        return { ...event, output }
      }
      default:
        return event.withheld && earlier ? clearUnclearedEvent(event, earlier, i) : event
    }
  }

  function clearUnclearedEvent(
    event: AgentMachineEvent,
    earlier: AgentContext,
    i: number,
  ): AgentMachineEvent {
    switch (event.type) {
      case 'xstate.done.actor.model':
      case 'xstate.done.actor.conclusion':
        return { ...event, output: clearAnswer(event.output, i) }
      case 'APPROVE':
        return { ...event, arguments: findArguments(event.callId, earlier) }
      case 'TOOL_RESULT': {
        const { child } = event.result
        const result = clearResult(event.callId, event.result, i)
        const isWhole = result.content === event.result.content
        return {
          ...event,
          result: { ...result, ...(child && { child: isWhole ? child : { ...child, message: '' } }) },
        }
      }
      case 'CHILD_WAITING':
        return { ...event, memo: null }
      case 'TOOL_OUTPUT':
        return clearResult(event.callId, event, i)
      case 'HANDLE_SAVED':
        return { ...event, handle: null }
      case 'REJECT':
        return { ...event, why: parseRejectReason(findResult(event.callId, i).content) }
      case 'REPLY':
        return { ...event, messages: clearNew(event, event.messages) }
      case 'STEER': {
        const text = findContent(event, 0)
        return { ...event, text: typeof text === 'string' ? text : unclearedInput }
      }
      default:
        // Unknown events are withheld.
        return {
          type: event.type,
          ...(event.now !== undefined && { now: event.now }),
          withheld: true,
        } as never
    }
  }

  function clearResult<Result extends { content: string; media?: unknown }>(
    callId: string,
    { media, ...output }: Result,
    i: number,
  ): Result {
    const { content, hasMedia } = findResult(callId, i)
    const keepsMedia = content === output.content && hasMedia && media !== undefined
    return { ...output, content, ...(keepsMedia && { media }) } as Result
  }

  function clearAnswer(output: ModelOutput, i: number): ModelOutput {
    const answer = findAnswer(i)
    const { text, refusal, toolCalls, finishReason, complete, usage, model, by } = output.response
    const { tool_calls: calls = [] } = answer ?? {}
    const words = answer?.content || ''
    const isKnown = calls.length === toolCalls.length
    const problem = output.outputProblem
    return {
      ...output,
      response: {
        text: text === '' ? '' : words || withheldAnswer,
        reasoning: answer?.reasoning ?? '',
        refusal:
          refusal === null || refusal === '' ? refusal : (answer?.refusal ?? (words || withheldAnswer)),
        toolCalls: isKnown
          ? calls
          : toolCalls.map(({ id }) => ({
              id,
              type: 'function',
              function: { name: withheldName, arguments: withheldArguments },
            })),
        finishReason,
        complete,
        usage,
        model,
        ...(by !== undefined && { by }),
        ...(answer?.reasoning_details && { reasoningDetails: answer.reasoning_details }),
        ...(answer?.media && { media: answer.media }),
        ...(answer?.annotations && { annotations: answer.annotations }),
        ...(answer?.provider_items && { providerItems: answer.provider_items }),
      },
      ...(problem !== undefined && { outputProblem: problem === null ? null : findProblem(i) }),
    }
  }

  function findAnswer(i: number): AssistantMessage | undefined {
    const { before, after } = placed[i] ?? {}
    const from = before?.messages.length ?? 0
    const at = after?.messages.findIndex(({ role }, n) => n >= from && role === 'assistant') ?? -1
    const message = finalMessages[at]
    return message?.role === 'assistant' ? message : undefined
  }

  /** The output problem of an answer, determined after screening. */
  function findProblem(i: number): string {
    const screening = placed
      .slice(i + 1)
      .find(({ entry }) => entry.type === 'event' && entry.event.type === 'xstate.done.actor.outputShields')
    return screening?.after?.outputProblem ?? withheldAnswer
  }

  function clearInputs(
    event: EventOf<'xstate.done.actor.inputShields'>,
    earlier: AgentContext,
  ): InputScreening[] {
    const uncleared = listUnclearedInput(earlier)
    return (toList(event.output) as readonly InputScreening[]).map((screening) => {
      const message = uncleared[screening.index]
      const at = message ? earlier.messages.indexOf(message) : -1
      const cleared = getUserContent(finalMessages[at])
      const { action } = screening
      if (action !== 'block' && typeof cleared === 'string') return { ...screening, content: cleared }
      // The parts already contain the screened text.
      return { ...screening, action: action === 'redact' ? 'warn' : action, content: '' }
    })
  }

  function findArguments(callId: string, { batchAt }: AgentContext): string {
    const message = finalMessages[batchAt]
    const calls = message?.role === 'assistant' ? (message.tool_calls ?? []) : []
    return calls.find(({ id }) => id === callId)?.function.arguments ?? withheldArguments
  }

  /** The screened result of a call, or the placeholder for one that shields did not pass. */
  function findResult(callId: string, i: number): { content: string; hasMedia: boolean } {
    for (const { entry, before } of placed.slice(i + 1)) {
      if (entry.type !== 'event') break
      if (entry.event.type !== 'xstate.done.actor.resultShields') continue
      if (!before?.calls.some(({ id, unscreenedResult }) => id === callId && unscreenedResult)) continue
      const screenings = toList(entry.event.output) as readonly CallScreening[]
      const screening = screenings.find((one) => one.callId === callId)
      if (screening === undefined || screening.action === 'block') break
      return { content: screening.content, hasMedia: screening.withoutMedia !== true }
    }
    return { content: withheldResult, hasMedia: true }
  }

  function clearState(state: MachineState): MachineState {
    const context = maskContext(state.context as AgentContext)
    return { ...state, context: { ...context, messages: clearMessages(context.messages) } }
  }

  function clearMessages(messages: readonly Message[]): Message[] {
    return messages.map((message, at) => {
      const final = finalMessages[at]
      return final?.id === message.id ? final : message
    })
  }

  function clearNew(by: object, messages: readonly NewMessage[]): NewMessage[] {
    return messages.map((one, n) => ({ ...one, content: findContent(by, n) }))
  }

  function findContent(by: object, n: number): Content {
    return getUserContent(finalMessages[places.get(by)?.[n] ?? -1]) ?? unclearedInput
  }
}

/** The transcript positions of the user messages of each entry and event. */
function findPlaces(placed: readonly PlacedRecord[]): Map<object, number[]> {
  const places = new Map<object, number[]>()
  const open: { own: number[]; n: number; content: Content }[] = []
  const wait = (by: object, messages: readonly { content: Content }[]): void => {
    const own: number[] = []
    places.set(by, own)
    messages.forEach(({ content }, n) => open.push({ own, n, content }))
  }
  for (const { entry, before, after } of placed) {
    const event = entry.type === 'event' ? entry.event : null
    if (entry.type === 'start') wait(entry, entry.input.input)
    if (event?.type === 'STEER') wait(event, [{ content: event.text }])
    if (event?.type === 'REPLY') wait(event, event.messages)
    const from = before?.messages.length ?? 0
    const added = after?.messages.slice(from) ?? []
    for (const [i, message] of added.entries()) {
      if (message.role !== 'user') continue
      const found = open.findIndex(({ content }) => isSameContent(content, message.content))
      const [slot] = found < 0 ? [] : open.splice(found, 1)
      if (slot) slot.own[slot.n] = from + i
    }
  }
  return places
}

function getUserContent(message: Message | undefined): Content | undefined {
  return message?.role === 'user' ? message.content : undefined
}

const parseRejectReason = (content: string): string =>
  content.startsWith(rejectionPrefix) ? content.slice(rejectionPrefix.length) : content

const isSameContent = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)
