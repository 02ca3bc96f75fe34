import type { DecisionKind, PolicyVerdict } from '../../../machines/agent/approvals.js'
import type { UserGuardsOutput, UserFinding } from '../../../guards/user-state.js'
import type { CompactionOutput } from '../../../machines/agent/fit.js'
import {
  type ModelActorError,
  createModelFailure,
  type ModelOutput,
} from '../../../machines/agent/model-response.js'
import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { AnyEventObject } from 'xstate'
import { createDoneActorEvent, createErrorActorEvent } from '../explore-options.js'

export const modelOutcomes = {
  text: createModelOutput({ text: 'Done.' }),
  call: createModelOutput({ calls: 'a read' }),
  'another call': createModelOutput({ calls: 'b look' }),
  'one call of each kind': createModelOutput({
    text: 'Working.',
    calls: 'a read, b transfer approval, c pick client',
  }),
  'two approvals': createModelOutput({ calls: 'a transfer approval, b transfer approval' }),
  'two calls': createModelOutput({ calls: 'a read, b look' }),
  'two client calls': createModelOutput({ calls: 'a pick client, b pick client' }),
  truncated: createModelOutput({ text: 'Do', finishReason: 'length' }),
  'truncated call': createModelOutput({ calls: 'a read', finishReason: 'length' }),
  filtered: createModelOutput({ text: 'Do', finishReason: 'content_filter' }),
  'filtered call': createModelOutput({ calls: 'a read', finishReason: 'content_filter' }),
  refusal: createModelOutput({ refusal: 'I will not.' }),
  'refusal with a call': createModelOutput({ refusal: 'I will not.', calls: 'a read' }),
  empty: createModelOutput({}),
  'text over budget': createModelOutput({ text: 'Done.', tokens: 1_000 }),
  'call over budget': createModelOutput({ calls: 'a read', tokens: 1_000 }),
} satisfies Record<string, ModelOutput>

const verdict = (decision: DecisionKind, more = {}): PolicyVerdict => ({ policy: 'p', decision, ...more })

/** The calls, with the decisions of the policies on each of them. */
function createDecidedCalls(calls: string, ...decisions: PolicyVerdict[][]): ModelOutput {
  const output = createModelOutput({ calls })
  return { ...output, calls: output.calls.map((call, i) => ({ ...call, decisions: decisions[i] ?? [] })) }
}

const expiring = (onExpiry?: 'pause' | 'cancel'): PolicyVerdict[] => [
  verdict('ask', { expiresMs: 1_000, ...(onExpiry && { onExpiry }) }),
]

const financeVotes = { approvers: { roles: ['finance'], count: 2, notRequester: true } }

const text = { text: modelOutcomes.text }
const governed = 'g govern approval'

/** Model answers, or their calls, for agents with a feature that is explored separately. */
const featureAnswers = {
  /** For call shields: one call can be edited while another is still undecided. */
  screened: { 'a call and two approvals': 'a read, b transfer approval, c transfer approval' },
  skilled: { ...text, 'skill call': 's load_skill', 'two calls': 'a read, b look' },
  handing: {
    ...text,
    handoff: 'h transfer_to_billing',
    'two handoffs and a call': 'h transfer_to_billing, i transfer_to_billing, b transfer approval',
  },
  governed: {
    ...text,
    'a call that a policy asks about': createDecidedCalls(governed, [verdict('allow'), verdict('ask')]),
    'a call that two people must approve': createDecidedCalls(governed, [verdict('ask', financeVotes)]),
    'a call that only a shadow policy denies': createDecidedCalls(governed, [
      verdict('ask'),
      verdict('deny', { shadow: true }),
    ]),
    'an allowed and a denied call': createDecidedCalls(
      'g govern, d transfer',
      [verdict('allow')],
      [verdict('deny'), verdict('allow')],
    ),
    'a client call that a policy asks about': {
      ...createModelOutput({ calls: 'p pick approval' }),
      calls: [{ id: 'p', needs: 'approval' as const, client: true as const, decisions: [verdict('ask')] }],
    },
  },
  expiring: {
    ...text,
    'a call and two questions that expire': createDecidedCalls(
      'a read, b pledge approval, c pledge approval',
      [],
      expiring(),
      expiring('pause'),
    ),
    'a call and a question that cancels the run on expiry': createDecidedCalls(
      'a read, b pledge approval',
      [],
      expiring('cancel'),
    ),
    'a delegation': 'd research',
  },
  lending: {
    ...text,
    'two questions': 'b lend approval, c lend approval',
    'a call and a question': 'a read, b lend approval',
  },
  sleeping: { ...text, call: 'a read', 'a delegation and a call': 'a research, b read' },
  asking: {
    ...text,
    'a call that asks, an approval and a client call': 'a book, b transfer approval, c pick client',
  },
  delegating: {
    ...text,
    'two delegations': 'a research, b research',
    'a delegation, an approval and a client call': 'a research, b transfer approval, c pick client',
  },
  deferring: {
    ...text,
    call: 'a read',
    'two calls': 'a read, b look',
    'two calls to one tool': 'a read, b read',
  },
  planned: { ...text, 'two calls': 'a read, b look' },
  watched: { ...text, call: 'a read', 'another call': 'b look' },
} satisfies Record<string, Record<string, ModelOutput | string>>

/** The policies' decisions on changed arguments. The last entry has no decisions. */
export const laterDecisions: Record<string, PolicyVerdict[] | undefined> = {
  allow: [verdict('allow')],
  ask: [verdict('ask')],
  'ask two people': [verdict('ask', { approvers: { count: 2 } })],
  deny: [verdict('deny')],
  none: undefined,
}

export const objectOutcomes = {
  object: createModelOutput({ text: '{"done":true}', problem: null }),
  'text instead of an object': createModelOutput({
    text: 'Done.',
    problem: 'The answer is not a JSON object.',
  }),
  'text instead of an object, over budget': createModelOutput({
    text: 'Done.',
    problem: 'It is not a JSON object.',
    tokens: 1_000,
  }),
  'empty answer instead of an object': createModelOutput({ problem: 'The answer is empty.' }),
  'truncated object': createModelOutput({ text: '{"do', finishReason: 'length' }),
  'call before an object': modelOutcomes.call,
  'refusal instead of an object': modelOutcomes.refusal,
} satisfies Record<string, ModelOutput>

export const modelFailures = {
  'recoverable error': createFailure('transient', 'http_503'),
  'rate limit': createFailure('rate_limit', 'http_429'),
  'fatal error': createFailure('fatal', 'invalid_api_key'),
  'fatal error mid-stream': addPartialText(createFailure('fatal', 'invalid_prompt')),
  'context overflow': createFailure('context_overflow', 'context_length_exceeded'),
  'context overflow mid-stream': addPartialText(createFailure('context_overflow', 'context_length_exceeded')),
  'incomplete answer': createCutOff(10),
  'incomplete answer over budget': createCutOff(1_000),
} satisfies Record<string, ModelActorError>

export const toolOutcomes = {
  ok: { status: 'ok', content: 'The result.', durationMs: 1 },
  changed: { status: 'ok', content: 'Another result.', durationMs: 1 },
  error: { status: 'error', errorKind: 'failed', content: 'It broke.', durationMs: 1 },
  denied: { status: 'denied', errorKind: 'policy_denied', content: 'Not allowed.', durationMs: 1 },
  'sub-agent out of quota': {
    status: 'error',
    errorKind: 'failed',
    content: 'The sub-agent failed.',
    durationMs: 1,
    child: { state: 'ERROR', code: 'provider_quota', message: 'The account is exhausted.' },
  },
  'transient error': { status: 'error', errorKind: 'transient', content: 'Not now.', durationMs: 1 },
} satisfies Record<string, ToolResult>

/** An answer given as a text is its calls. */
export function createAnswerEvents(
  actor: 'model' | 'conclusion',
  answers: Readonly<Record<string, ModelOutput | string>>,
): Events {
  const events = Object.entries(answers).map(([name, answer]) => {
    const output = typeof answer === 'string' ? createModelOutput({ calls: answer }) : answer
    return [`${actor}: ${name}`, done(actor, output)] as const
  })
  return Object.fromEntries(events)
}

function createModelOutput(answer: {
  text?: string
  refusal?: string
  calls?: string
  finishReason?: string
  tokens?: number
  problem?: string | null
}): ModelOutput {
  const { text = '', refusal = null, finishReason = 'stop', tokens = 10 } = answer
  type Needs = ModelOutput['calls'][number]['needs']
  const calls = answer.calls?.split(', ').map((call) => call.split(' ') as [string, string, Needs?]) ?? []
  return {
    response: {
      text,
      reasoning: '',
      refusal,
      toolCalls: calls.map(([id, name]) => ({
        id,
        type: 'function',
        function: { name, arguments: '{"n":1}' },
      })),
      finishReason,
      complete: true,
      model: 'm',
      usage: createUsage(tokens),
    },
    calls: calls.map(([id, , needs = 'nobody']) => ({ id, needs })),
    ...(answer.problem !== undefined && { outputProblem: answer.problem }),
  }
}

export function createFailure(kind: ModelActorError['kind'], code: string): ModelActorError {
  return { ...createModelFailure({ kind, code, message: `It failed: ${code}.` }), usage: null, jitter: 1 }
}

export function createBudgetFailure(code = 'shared_budget', more?: Pick<ModelActorError, 'wakeAt'>) {
  return { ...createFailure('fatal', code), budget: 'tenant', ...more }
}

function addPartialText(error: ModelActorError): ModelActorError {
  return { ...error, partialText: 'Do' }
}

function createCutOff(tokens: number): ModelActorError {
  return { ...addPartialText(createFailure('incomplete', 'incomplete_response')), usage: createUsage(tokens) }
}

export function createUsage(tokens: number): Usage {
  return {
    inputTokens: tokens - 1,
    outputTokens: 1,
    totalTokens: tokens,
    cachedInputTokens: 0,
    reasoningTokens: 0,
    cost: 0,
    estimated: false,
  }
}

export function createFitOutput(fit: CompactionOutput['fit']): CompactionOutput {
  return { fit, strategy: 'compact', before: 20, after: 10, usage: null, warning: null }
}

export function createConsultation(
  action?: UserFinding['action'],
  onHalt: UserFinding['onHalt'] = 'error',
): UserGuardsOutput {
  const finding = { guard: 'own', evidence: 'own: seen', message: 'Not that.', onHalt, callIds: null }
  return { states: { own: 1 }, findings: action ? [{ action, ...finding }] : [], warnings: [] }
}

export type Events = Record<string, AnyEventObject>

/** The usual time, a time after every deadline, two wake times, and the reset of a shared budget. */
export const early = 1_000
export const late = 1_000_000
export const wakeTime = 500_000
export const laterWakeTime = 600_000
export const nextWindow = 700_000

export function stampEvent(event: AnyEventObject, now = early): AnyEventObject {
  return { ...event, now }
}

export const done = (actor: string, output?: unknown, now?: number): AnyEventObject =>
  stampEvent(createDoneActorEvent(actor, output), now)

export const failed = (actor: string, error: ModelActorError): AnyEventObject =>
  stampEvent(createErrorActorEvent(actor, error))

/** The events of agents with one feature. */
export const featureModels = Object.fromEntries(
  Object.entries(featureAnswers).map(([name, answers]) => [name, createAnswerEvents('model', answers)]),
) as Record<keyof typeof featureAnswers, Events>
