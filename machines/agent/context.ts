import type { CallCounts } from '../../guards/call-caps.js'
import type { GuardrailsState } from '../../guards/state.js'
import type { ResponseKind } from '../../guards/completion.js'
import type { AgentConfig } from './config.js'
import type { Fit } from './fit.js'
import { type Message, type RetrievedSnippet, type UserMessage, parseMessageNumber } from './messages.js'
import type { AgentState, Reason, RunFailure, TurnEnd } from './run-result.js'
import type { Refusal } from './refusals.js'
import type { BatchCall, ToolTraits } from './batch-calls.js'
import { type ActiveSkill, findActiveSkills } from './skills.js'
import type { UnclearedAnswer, ContinuedAnswer } from './screening.js'
import type { StepPlan } from './step-plan.js'
import { noUsage, type Usage } from './usage.js'

/** Which optional substates this agent uses; the others are bypassed by guards on their incoming edges. */
export interface Features {
  inputShields: boolean
  outputShields: boolean
  callShields: boolean
  resultShields: boolean
  retrieval: boolean
  fitting: boolean
  /** Guards that the agent's author has defined. */
  userGuards: boolean
  /** An answer is an object that has to fit a schema. */
  structuredOutput: boolean
  /** The agent's author decides after each batch whether the run ends with it. Absent: no. */
  stopWhen?: boolean
  /** The agent's author decides what each request is made of. Absent: no. */
  prepareStep?: boolean
}

/** A user message that has no place in the transcript yet. */
export type NewMessage = Pick<UserMessage, 'content'> & Partial<Pick<UserMessage, 'data'>>

/** What holds in a fork alone. */
export interface ForkTerms {
  /** Stands in place of the agent's instructions, also of those of a step. */
  instructions?: string
  /** Every call that is not read-only asks for approval: the session that was forked may have had its effect. */
  askFirst?: true
}

/** What a session hands from one run to the next: plain JSON. */
export interface SessionState {
  /** The transcript so far. */
  messages: Message[]
  /** Totals of all runs. */
  usage: Usage
  guardrails: GuardrailsState
  /** Whether the session has had its one budget warning. */
  warnedOfBudget: boolean
  /** What requests leave out of the transcript; null while all of it fits. */
  fit: Fit | null
  /** The deferred tools that the session has loaded, in this order. Absent: none. */
  loaded?: readonly string[]
  /** Absent: it is no fork, or one without terms. */
  terms?: ForkTerms
  /** Ends of earlier runs. Absent: all of them answered in full. */
  turnEnds?: readonly TurnEnd[]
  /** Content that providers have refused. Absent: none. */
  refusals?: readonly Refusal[]
  /** How many messages the session has numbered, where its branches have messages that the transcript does not hold. */
  lastMessageNumber?: number
}

/** Everything a run starts from. Plain JSON: it is the first entry of the journal. */
export interface AgentInput extends Omit<SessionState, 'fit'>, Partial<Pick<SessionState, 'fit'>> {
  /** Milliseconds since the epoch, as everywhere in the machine. */
  now: number
  runId: string
  sessionId: string
  config: AgentConfig
  tools: Record<string, ToolTraits>
  features: Features
  /** What the user says now. */
  input: NewMessage[]
  /** The agent that speaks, as a handoff calls it. Absent: the session's first agent. */
  speaker?: string
}

/** What a guard has to say; the chart decides where it leads. */
export interface GuardrailVerdict {
  guard: Reason
  /** Which of the user's own it is, when `guard` is `user_guard`. */
  userGuard?: string
  /** Which of its rules speaks, where it has several. */
  rule?: string
  evidence: string
  message: string
  onHalt: 'error' | 'pause'
  /** What the model reads when it is asked for last words before the run pauses; absent, it is not asked. */
  lastWords?: string
}

/** What the machine knows of its run: plain JSON, and all that guards and actions read. */
export interface AgentContext {
  runId: string
  sessionId: string
  config: AgentConfig
  /** Of the agent that speaks. */
  tools: Record<string, ToolTraits>
  features: Features
  /** The agent that speaks, as a handoff calls it; null: the session's first agent. */
  speaker: string | null

  /** The transcript; its last batch is completed in call order whenever the run rests. */
  messages: Message[]
  /** How many messages the session has numbered. */
  lastMessageNumber: number
  /** What requests leave out of the transcript; null while all of it fits. */
  fit: Fit | null
  /** The deferred tools that the session has loaded, in this order. */
  loaded: readonly string[]
  /** See `SessionState`. */
  terms?: ForkTerms
  /** See `SessionState`. */
  turnEnds?: readonly TurnEnd[]
  refusals?: readonly Refusal[]
  /** What the user said and the transcript does not hold yet: taken in at the start and after each reply. */
  inbox: NewMessage[]
  /** What memory found for the present user message; null while it has not been asked. Rides on every request. */
  retrieved: RetrievedSnippet[] | null
  /** Steering that waits for the next safe point. */
  steering: string[]

  /** The top-level state, for `state_changed.from`. */
  state: AgentState | null
  /** Why the run rests or ended; null while it runs. */
  reason: Reason | null
  error: RunFailure | null
  pausing: boolean

  steps: number
  /** Attempts of the present step; 1 is the first. */
  attempt: number
  /** Rate limits among them. */
  rateLimits: number
  /** Refusals of content among them. Absent: none. */
  resends?: number
  backOffUntil: number
  /** Absolute end of the run's time; null when it has none. */
  deadline: number | null
  /** The time that is left while the clock is stopped; null while it runs. */
  timeLeft: number | null
  /** Until when the run sleeps, or is about to; null when it does not. */
  wakeAt: number | null

  usage: { run: Usage; session: Usage }
  warnedOfBudget: boolean

  /** What the last response was. */
  response: ResponseKind | null
  /** Text of an answer that was cut off and is being continued. */
  continuedText: string
  /** The same text before screening, where output shields exist: they screen the joined answer, not its parts. */
  unscreenedText: ContinuedAnswer | null
  output: string
  /** Continuations, re-prompts, retries and repairs used since the last user message. */
  recoveries: number
  reprompts: number
  emptyRetries: number
  outputRepairs: number
  /** Why the last answer does not fit the output schema; null when it does, or when nothing has to. */
  outputProblem: string | null

  /** The answer that waits for the shields; null otherwise. */
  pendingAnswer: UnclearedAnswer | null
  /** The step of an answer that is not emitted yet, because shields screen it or its calls; null otherwise. */
  unemittedStep: string | null

  /** The current batch, and the index of its assistant message in `messages`. */
  calls: BatchCall[]
  batchAt: number
  /** Number of that assistant message; its results are numbered right after it. */
  batchNumber: number
  /** Whether a call of the last batch failed. */
  lastBatchFailed: boolean

  guardrails: GuardrailsState
  /** The skills whose instructions hold, in the order in which they were loaded. */
  skills: ActiveSkill[]
  /** What the caps on tool calls have counted since the last user message; null while none counts. */
  callCounts: CallCounts | null
  /** What was decided about the step that is asked, or has just been; null: nothing. */
  plan: StepPlan | null
  /** Rides on the next request only. */
  nudges: string[]
  verdict: GuardrailVerdict | null
}

export function createContext(input: AgentInput): AgentContext {
  const { timeoutMs } = input.config.limits
  return {
    runId: input.runId,
    sessionId: input.sessionId,
    config: input.config,
    tools: input.tools,
    features: input.features,
    speaker: input.speaker ?? null,
    messages: input.messages,
    lastMessageNumber: Math.max(input.lastMessageNumber ?? 0, countNumbered(input.messages)),
    fit: input.fit ?? null,
    loaded: input.loaded ?? [],
    ...(input.terms && { terms: input.terms }),
    ...(input.turnEnds && { turnEnds: input.turnEnds }),
    ...(input.refusals && { refusals: input.refusals }),
    inbox: input.input,
    retrieved: null,
    steering: [],
    state: null,
    reason: null,
    error: null,
    pausing: false,
    ...freshCounters,
    backOffUntil: 0,
    deadline: timeoutMs > 0 ? input.now + timeoutMs : null,
    timeLeft: null,
    wakeAt: null,
    usage: { run: noUsage, session: input.usage },
    warnedOfBudget: input.warnedOfBudget,
    response: null,
    pendingAnswer: null,
    unemittedStep: null,
    calls: [],
    batchAt: -1,
    batchNumber: 0,
    guardrails: input.guardrails,
    skills: findActiveSkills(input.messages),
    verdict: null,
  }
}

/**
 * The context with something changed. It is copied key by key, because that is what engines are good at: a spread of so
 * many keys takes ten times as long, and six times the memory.
 */
export function patchContext(context: AgentContext, patch: Partial<AgentContext>): AgentContext {
  const copy: AgentContext = {
    runId: context.runId,
    sessionId: context.sessionId,
    config: context.config,
    tools: context.tools,
    features: context.features,
    speaker: context.speaker,
    messages: context.messages,
    lastMessageNumber: context.lastMessageNumber,
    fit: context.fit,
    loaded: context.loaded,
    inbox: context.inbox,
    retrieved: context.retrieved,
    steering: context.steering,
    state: context.state,
    reason: context.reason,
    error: context.error,
    pausing: context.pausing,
    steps: context.steps,
    attempt: context.attempt,
    rateLimits: context.rateLimits,
    backOffUntil: context.backOffUntil,
    deadline: context.deadline,
    timeLeft: context.timeLeft,
    wakeAt: context.wakeAt,
    usage: context.usage,
    warnedOfBudget: context.warnedOfBudget,
    response: context.response,
    continuedText: context.continuedText,
    unscreenedText: context.unscreenedText,
    output: context.output,
    recoveries: context.recoveries,
    reprompts: context.reprompts,
    emptyRetries: context.emptyRetries,
    outputRepairs: context.outputRepairs,
    outputProblem: context.outputProblem,
    pendingAnswer: context.pendingAnswer,
    unemittedStep: context.unemittedStep,
    calls: context.calls,
    batchAt: context.batchAt,
    batchNumber: context.batchNumber,
    lastBatchFailed: context.lastBatchFailed,
    guardrails: context.guardrails,
    skills: context.skills,
    plan: context.plan,
    nudges: context.nudges,
    callCounts: context.callCounts,
    verdict: context.verdict,
  }
  if (context.terms) copy.terms = context.terms
  if (context.turnEnds) copy.turnEnds = context.turnEnds
  if (context.refusals) copy.refusals = context.refusals
  if (context.resends) copy.resends = context.resends
  return Object.assign(copy, patch)
}

/** How many messages a transcript has numbered: one that goes on from a branch has gaps in its numbers. */
export function countNumbered(messages: readonly Message[]): number {
  const last = messages.at(-1)
  return Math.max(messages.length, (last && parseMessageNumber(last.id)) ?? 0)
}

/** What starts anew with each user message. */
export const freshCounters = {
  steps: 0,
  attempt: 1,
  rateLimits: 0,
  recoveries: 0,
  reprompts: 0,
  emptyRetries: 0,
  outputRepairs: 0,
  outputProblem: null as string | null,
  continuedText: '',
  unscreenedText: null as ContinuedAnswer | null,
  output: '',
  lastBatchFailed: false,
  plan: null as StepPlan | null,
  nudges: [] as string[],
  callCounts: null as CallCounts | null,
} satisfies Partial<AgentContext>

export const noFeatures: Features = {
  inputShields: false,
  outputShields: false,
  callShields: false,
  resultShields: false,
  retrieval: false,
  fitting: false,
  userGuards: false,
  structuredOutput: false,
}
