import type { AnyEventObject, SnapshotFrom } from 'xstate'
import type { agentMachine } from '../../../machines/agent.machine.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { ModelActorError, ModelOutput } from '../../../machines/agent/response.js'
import type { ToolResult } from '../../../machines/agent/results.js'
import { doneActor, errorActor } from '../space.js'
import { watchesCalls } from './watches-calls.js'

/** When everything of an exploration happens, and a time after every deadline. */
export const early = 1_000
export const late = 1_000_000

/** What a model can answer: the text, the calls, or how little of it arrived. */
export const modelOutcomes = {
  text: output({ text: 'Done.' }),
  call: output({ calls: [['a', 'read']] }),
  'another call': output({ calls: [['b', 'look']] }),
  'calls of every kind': output({ calls: [['a', 'read'], ['b', 'transfer', 'approval'], ['c', 'pick', 'client']] }),
  'two approvals': output({ calls: [['a', 'transfer', 'approval'], ['b', 'transfer', 'approval']] }),
  'two client calls': output({ calls: [['a', 'pick', 'client'], ['b', 'pick', 'client']] }),
  truncated: output({ text: 'Do', finishReason: 'length' }),
  'truncated call': output({ calls: [['a', 'read']], finishReason: 'length' }),
  filtered: output({ text: 'Do', finishReason: 'content_filter' }),
  refusal: output({ refusal: 'I will not.' }),
  empty: output({}),
  'text over budget': output({ text: 'Done.', tokens: 1_000 }),
  'call over budget': output({ calls: [['a', 'read']], tokens: 1_000 }),
} satisfies Record<string, ModelOutput>

export const modelFailures = {
  'recoverable error': failure('transient', 'http_503'),
  'rate limit': failure('rate_limit', 'http_429'),
  'fatal error': failure('fatal', 'invalid_api_key'),
  'context overflow': failure('context_overflow', 'context_length_exceeded'),
  'incomplete answer': failure('incomplete', 'incomplete_response'),
  'over budget before the call': failure('fatal', 'token_budget'),
} satisfies Record<string, ModelActorError>

export const toolOutcomes = {
  ok: { status: 'ok', content: 'The result.', durationMs: 1 },
  changed: { status: 'ok', content: 'Another result.', durationMs: 1 },
  error: { status: 'error', errorKind: 'failed', content: 'It broke.', durationMs: 1 },
  denied: { status: 'denied', errorKind: 'policy_denied', content: 'Not allowed.', durationMs: 1 },
  'child out of quota': {
    status: 'error',
    errorKind: 'failed',
    content: 'The sub-agent failed.',
    durationMs: 1,
    child: { state: 'ERROR', code: 'provider_quota', message: 'The account is exhausted.' },
  },
  timeout: { status: 'timeout', errorKind: 'transient', content: 'It took too long.', durationMs: 1 },
} satisfies Record<string, ToolResult>

type Events = Record<string, AnyEventObject>

/**
 * Every event that the agent machine can meet in a state, under names that people use. Events of actors are tried only
 * while their actor runs; the rest wherever it means something. Where guards watch the calls, the model only calls and
 * speaks, because what they remember multiplies the states.
 */
export function agentAlphabet({ context, value }: SnapshotFrom<typeof agentMachine>): Events {
  const asked = modelIsAsked(value)
  if (watchesCalls(context.config)) {
    return {
      cancel: always['cancel'] as AnyEventObject,
      ...(asked && { ...watchedModel, ...ofModel('conclusion') }),
      ...(context.state === 'WAITING_FOR_TOOL' && ofTools(context)),
      ...(context.state === 'PAUSED' && { resume }),
    }
  }
  return {
    ...always,
    ...(context.steering.length === 0 && { steer }),
    ...(asked && { ...ofModel('model'), ...ofModel('conclusion') }),
    ...actors,
    ...(context.state === 'WAITING_FOR_TOOL' && ofTools(context)),
    ...(context.state === 'WAITING_FOR_INPUT' && ofPeople(context)),
    ...(context.state === 'PAUSED' && { resume }),
  }
}

const resume = at({ type: 'RESUME' })
const steer = at({ type: 'STEER', text: 'Hurry.' })

const watchedModel: Events = {
  'model: text': at(doneActor('model', modelOutcomes.text)),
  'model: call': at(doneActor('model', modelOutcomes.call)),
  'model: another call': at(doneActor('model', modelOutcomes['another call'])),
}

const always: Events = {
  cancel: at({ type: 'CANCEL' }),
  'cancel midway': at({ type: 'CANCEL', partial: { text: 'Half an', usage: null } }),
  pause: at({ type: 'PAUSE' }),
  deadline: at({ type: 'DEADLINE' }, late),
  'resumed in time': at({ type: 'RESUMED' }),
  'resumed too late': at({ type: 'RESUMED' }, late),
}

const actors: Events = {
  'back-off over': at(doneActor('backOff')),
  'back-off failed': at(errorActor('backOff', failure('fatal', 'internal'))),
  'input allowed': at(doneActor('inputShields', { action: 'allow', message: null })),
  'input blocked': at(doneActor('inputShields', { action: 'block', message: 'Not that.' })),
  'input shield failed': at(errorActor('inputShields', failure('fatal', 'internal'))),
  retrieved: at(doneActor('retrieval')),
  'retrieval failed': at(errorActor('retrieval', failure('fatal', 'internal'))),
  fitted: at(doneActor('fitting')),
  'does not fit': at(errorActor('fitting', failure('fatal', 'internal'))),
  'calls screened': at(doneActor('callShields')),
  'call shield failed': at(errorActor('callShields', failure('fatal', 'internal'))),
  'output allowed': at(doneActor('outputShields', { action: 'allow', message: null })),
  'output blocked': at(doneActor('outputShields', { action: 'block', message: 'Not that.' })),
  'output shield failed': at(errorActor('outputShields', failure('fatal', 'internal'))),
  'tool runner ended': at(doneActor('tools')),
  'tool runner failed': at(errorActor('tools', failure('fatal', 'internal'))),
}

function ofModel(actor: 'model' | 'conclusion'): Events {
  const events: Events = {}
  for (const [name, outcome] of Object.entries(modelOutcomes)) events[`${actor}: ${name}`] = at(doneActor(actor, outcome))
  for (const [name, error] of Object.entries(modelFailures)) events[`${actor}: ${name}`] = at(errorActor(actor, error))
  events[`${actor}: text too late`] = at(doneActor(actor, modelOutcomes.text), late)
  events[`${actor}: call too late`] = at(doneActor(actor, modelOutcomes.call), late)
  return events
}

function ofTools({ calls }: AgentContext): Events {
  const open = calls.find((call) => call.result === undefined && call.started)
  const events: Events = { 'batch done': at({ type: 'BATCH_DONE' }), 'batch done late': at({ type: 'BATCH_DONE' }, late) }
  for (const [name, result] of Object.entries(toolOutcomes)) {
    events[`tool: ${name}`] = at({ type: 'TOOL_RESULT', callId: open?.id ?? 'a', result })
  }
  events['tool: result of nobody’s call'] = at({ type: 'TOOL_RESULT', callId: 'nobody', result: toolOutcomes.ok })
  return events
}

function ofPeople({ calls }: AgentContext): Events {
  const open = calls.find((call) => call.result === undefined && call.needs !== 'nobody')
  const callId = open?.id ?? 'a'
  return {
    approve: at({ type: 'APPROVE', callId }),
    'approve an edit': at({ type: 'APPROVE', callId, arguments: '{"n":2}' }),
    'approve nothing': at({ type: 'APPROVE', callId: 'nobody' }),
    reject: at({ type: 'REJECT', callId, why: 'No.' }),
    'hand in output': at({ type: 'TOOL_OUTPUT', callId, content: 'Picked.' }),
    'hand in for nothing': at({ type: 'TOOL_OUTPUT', callId: 'nobody', content: 'Picked.' }),
    reply: at({ type: 'REPLY', messages: [{ content: 'And now?' }] }),
  }
}

function modelIsAsked(value: unknown): boolean {
  const state = (value as { RUNNING?: string }).RUNNING
  return state === 'requesting' || state === 'concluding'
}

function at(event: AnyEventObject, now = early): AnyEventObject {
  return { ...event, now }
}

function output(answer: {
  text?: string
  refusal?: string
  calls?: [id: string, name: string, needs?: 'approval' | 'client'][]
  finishReason?: string
  tokens?: number
}): ModelOutput {
  const { text = '', refusal = null, calls = [], finishReason = 'stop', tokens = 10 } = answer
  return {
    response: {
      text,
      reasoning: '',
      refusal,
      toolCalls: calls.map(([id, name]) => ({ id, type: 'function', function: { name, arguments: '{"n":1}' } })),
      finishReason,
      complete: true,
      model: 'm',
      usage: {
        inputTokens: tokens - 1,
        outputTokens: 1,
        totalTokens: tokens,
        cachedInputTokens: 0,
        reasoningTokens: 0,
        cost: 0,
        estimated: false,
      },
    },
    calls: calls.map(([id, , needs]) => ({ id, needs: needs ?? 'nobody' })),
  }
}

function failure(kind: ModelActorError['kind'], code: string): ModelActorError {
  return {
    kind,
    code,
    message: 'It failed.',
    status: null,
    retryAfterMs: null,
    partialText: '',
    usage: null,
    jitter: 1,
  }
}
