import type { Message } from '../../machines/agent/messages.js'
import type { AgentEvent, RunResult } from '../../src/index.js'
import { createChatBodyBuilder } from '../../src/core/models/openai/chat-wire.js'
import { createBodyEncoder } from '../../src/core/models/openai/encode-body.js'
import type { ChatRequest } from '../../src/rehearsal/index.js'
import { findStrictProblem } from '../../src/rehearsal/request-problem.js'
import { findHistoryProblem } from '../../src/testing/index.js'

const encodeBody = createBodyEncoder()

/** The parts of a run's environment that affect its result. */
export interface Surroundings {
  hasReliableStore: boolean
  /** Another run asks for the same session. */
  hasRival: boolean
}

/** The guarantees of every run. Each sentence is a broken promise. */
export function brokenBy(
  result: RunResult,
  events: readonly AgentEvent[],
  surroundings: Surroundings,
): string[] {
  return [...ofHistory(result.messages), ...ofEvents(result, events), ...ofResult(result, surroundings)]
}

/** Every provider must accept the next request. */
export function ofHistory(messages: readonly Message[]): string[] {
  const problem = findHistoryProblem(messages)
  const next: Message = { id: 'next', createdAt: 0, role: 'user', content: 'And now?' }
  const builder = createChatBodyBuilder({
    model: 'm',
    maxTokensField: 'max_tokens',
    echoReasoning: 'none',
    streamOptions: false,
    isMistral: false,
  })
  const body = builder({
    instructions: null,
    messages: [...messages, next],
    nudges: [],
    tools: [],
    sampling: {},
    extraBody: {},
    stream: false,
  })
  const refused = findStrictProblem(JSON.parse(new TextDecoder().decode(encodeBody(body))) as ChatRequest)
  return [
    ...(problem === null ? [] : [`history: ${problem}`]),
    ...(refused === null ? [] : [`sent: ${refused.message}`]),
  ]
}

function ofEvents(result: RunResult, events: readonly AgentEvent[]): string[] {
  const of = <Type extends AgentEvent['type']>(type: Type) =>
    events.filter((event): event is Extract<AgentEvent, { type: Type }> => event.type === type)
  const broken: string[] = []
  const ends = of('run_ended')
  if (ends.length !== 1) broken.push(`${ends.length} terminal events`)
  if (events.at(-1)?.type !== 'run_ended') broken.push(`the last event is ${events.at(-1)?.type}`)
  if (ends[0] && (ends[0].state !== result.state || ends[0].reason !== result.reason))
    broken.push(`told the end ${ends[0].state}/${ends[0].reason}`)
  const isError = result.state !== 'COMPLETED' && result.state !== 'CANCELLED'
  if (of('error').length !== (isError ? 1 : 0))
    broken.push(`${of('error').length} errors told in ${result.state}`)
  const seqs = events.map(({ seq }) => seq)
  if (seqs.some((seq, i) => seq !== i + 1)) broken.push('events are not numbered 1, 2, 3 …')
  broken.push(
    ...ofPairs(
      'tool_call',
      of('tool_call').map(({ call }) => call.id),
      of('tool_result').map(({ callId }) => callId),
    ),
  )
  broken.push(
    ...ofPairs(
      'step',
      of('step_started').map(({ stepId }) => stepId),
      of('step_completed').map(({ stepId }) => stepId),
    ),
  )
  const chunks = of('stream_chunk').map(({ stepId, attempt, finished }) => ({
    key: `${stepId} ${attempt}`,
    finished,
  }))
  for (const key of new Set(chunks.map((chunk) => chunk.key))) {
    const finished = chunks.filter((chunk) => chunk.key === key).map((chunk) => chunk.finished)
    if (finished.some((isLast, i) => isLast !== (i === finished.length - 1)))
      broken.push(
        `the attempt ${key} is finished ${finished.filter(Boolean).length} times, or goes on after it`,
      )
  }
  return broken
}

/** Equal numbers of starts and ends, for each kind. */
function ofPairs(what: string, begun: readonly string[], ended: readonly string[]): string[] {
  const [a, b] = [[...begun].sort().join(), [...ended].sort().join()]
  return a === b ? [] : [`${what}: begun ${a}, ended ${b}`]
}

function ofResult(result: RunResult, { hasReliableStore, hasRival }: Surroundings): string[] {
  const broken: string[] = []
  const isWell = result.state === 'COMPLETED' || result.state === 'CANCELLED'
  // An end that could not be written is reported with the store's error.
  const isUnwritten = !hasReliableStore && isWell && result.error?.code === 'store_unavailable'
  // A run that ended because its log could not be written continues from there. The same applies to a run
  // that was answered at a wait while another run held the session, because any run may take a waiting
  // session.
  const isUnheld = hasRival && result.error?.code === 'session_busy'
  const mayGoOn =
    (!hasReliableStore || isUnheld) && result.state === 'ERROR' && result.reason === 'store_error'
  if (result.resumable && !mayGoOn) broken.push('a final result is resumable')
  if ((result.error === undefined) !== isWell && !isUnwritten)
    broken.push(`${result.state} with error ${result.error?.code}`)
  if (JSON.stringify(JSON.parse(JSON.stringify(result))) !== JSON.stringify(result))
    broken.push('the result is no JSON')
  return broken
}
