import type { CallCounts } from '../../guards/call-caps.js'
import type { GuardrailsState } from '../../guards/state.js'
import type { ResponseKind } from '../../guards/completion.js'
import type { AgentConfig } from './config.js'
import type { Fit } from './fit.js'
import type { Approvers, Expiry } from './approvals.js'
import type { Principal } from './principal.js'
import { type Message, type RetrievedSnippet, type UserMessage, parseMessageNumber } from './messages.js'
import type { AgentState, Reason, RunFailure, TurnEnd } from './run-result.js'
import type { Refusal } from './refusals.js'
import type { BatchCall, ToolTraits } from './batch-calls.js'
import { type ActiveSkill, findActiveSkills } from './skills.js'
import type { UnclearedAnswer, ContinuedAnswer } from './screening.js'
import type { StepPlan } from './step-plan.js'
import { noUsage, type Usage } from './usage.js'

/** Optional substates that this agent uses. The others are bypassed. */
export interface Features {
  inputShields: boolean
  outputShields: boolean
  callShields: boolean
  resultShields: boolean
  retrieval: boolean
  fitting: boolean
  userGuards: boolean
  /** The answer must match a schema. */
  structuredOutput: boolean
  /** Whether user code decides after each batch if the run ends. Default false. */
  stopWhen?: boolean
  /** Whether user code prepares each request. Default false. */
  prepareStep?: boolean
}

/** A user message that is not in the transcript yet. */
export type NewMessage = Pick<UserMessage, 'content'> & Partial<Pick<UserMessage, 'data'>>

/** Settings of a fork. */
export interface ForkTerms {
  /** Replaces the instructions of the agent and of its steps. */
  instructions?: string
  /** All calls that are not read-only ask for approval, because the original session may have had their effects. */
  askFirst?: true
}

/** Session state passed from one run to the next, as plain JSON. */
export interface SessionState {
  messages: Message[]
  /** Totals of all runs. */
  usage: Usage
  guardrails: GuardrailsState
  /** Whether the session has had its budget warning. */
  warnedOfBudget: boolean
  /** Messages that requests omit; null if all fit. */
  fit: Fit | null
  /** Loaded deferred tools, in load order. Absent: none. */
  loaded?: readonly string[]
  /** Absent: not a fork, or a fork without settings. */
  terms?: ForkTerms
  /** Ends of earlier runs. Absent: all were complete answers. */
  turnEnds?: readonly TurnEnd[]
  /** Content refused by providers. Absent: none. */
  refusals?: readonly Refusal[]
  /** Number of messages in the session, including branches that are not in the transcript. */
  lastMessageNumber?: number
}

/** The input of a run, as plain JSON. It is the first entry of the log. */
export interface AgentInput extends Omit<SessionState, 'fit'>, Partial<Pick<SessionState, 'fit'>> {
  /** Milliseconds since the epoch. */
  now: number
  runId: string
  sessionId: string
  config: AgentConfig
  tools: Record<string, ToolTraits>
  features: Features
  /** The new user messages. */
  input: NewMessage[]
  /** The handoff name of the current agent. Absent for the session's first agent. */
  speaker?: string
  /** The authors of the input and, for a sub-agent, of the words of its parents. Absent: unknown. */
  requesters?: readonly Principal[]
  /** Who may approve calls, by the agent and the agents above it. Absent: anyone. */
  approvers?: readonly Approvers[]
  /** The time limit of questions, by the agent and the agents above it. Absent: none. */
  expiry?: Expiry
}

/** The verdict of a guard; the chart decides what follows. */
export interface GuardrailVerdict {
  guard: Reason
  /** The user guard, when `guard` is `user_guard`. */
  userGuard?: string
  /** The rule that applied, for guards with several. */
  rule?: string
  evidence: string
  message: string
  onHalt: 'error' | 'pause'
  /** The request for last words before a pause. Absent if the guard asks for none. */
  lastWords?: string
}

/** The machine's context, as plain JSON. Guards and actions read nothing else. */
export interface AgentContext {
  runId: string
  sessionId: string
  config: AgentConfig
  /** Tools of the current agent. */
  tools: Record<string, ToolTraits>
  features: Features
  /** The handoff name of the current agent, or null for the session's first agent. */
  speaker: string | null

  /** The transcript. Its last batch is complete, in call order, whenever the run rests. */
  messages: Message[]
  /** Number of messages in the session. */
  lastMessageNumber: number
  /** Messages that requests omit; null if all fit. */
  fit: Fit | null
  /** Loaded deferred tools, in load order. */
  loaded: readonly string[]
  /** See `SessionState`. */
  terms?: ForkTerms
  /** See `SessionState`. */
  turnEnds?: readonly TurnEnd[]
  refusals?: readonly Refusal[]
  /** See `AgentInput`. */
  approvers?: readonly Approvers[]
  expiry?: Expiry
  /** The authors of the run's words: its input, replies and steering. Absent: unknown. */
  requesters?: readonly Principal[]
  /** User messages that are not in the transcript yet. Read at the start and after each reply. */
  inbox: NewMessage[]
  /** Snippets for the current user message, added to each request; null before the search. */
  retrieved: RetrievedSnippet[] | null
  /** Steering that waits for the next safe point. */
  steering: string[]

  /** The top-level state, for `state_changed.from`. */
  state: AgentState | null
  /** Why the run rests or ended; null while it runs. */
  reason: Reason | null
  error: RunFailure | null
  /** Whether the run pauses at its next safe point. A string is the reason for that pause. */
  pausing: boolean | 'approval_expired'

  steps: number
  /** Attempts of the current step, from 1. */
  attempt: number
  /** Attempts that failed with a rate limit. */
  rateLimits: number
  /** Attempts that failed with refused content. Absent: none. */
  resends?: number
  backOffUntil: number
  /** The deadline; null without a time limit. */
  deadline: number | null
  /** Remaining time while the clock is stopped; null while it runs. */
  timeLeft: number | null
  /** Wake time of a run that sleeps or is about to; otherwise null. */
  wakeAt: number | null

  usage: { run: Usage; session: Usage }
  warnedOfBudget: boolean

  /** The kind of the last response. */
  response: ResponseKind | null
  /** Text of a truncated answer that is being continued. */
  continuedText: string
  /** The unscreened text of that answer, because output shields screen the joined answer. */
  unscreenedText: ContinuedAnswer | null
  output: string
  /** Recoveries since the last user message: continuations, re-prompts, retries and repairs. */
  recoveries: number
  reprompts: number
  emptyRetries: number
  outputRepairs: number
  /** Why the last answer does not fit the output schema; otherwise null. */
  outputProblem: string | null

  /** The answer that waits for shields, or null. */
  pendingAnswer: UnclearedAnswer | null
  /** The step of an answer that shields still screen, or null. */
  unemittedStep: string | null

  /** The current batch, and the index of its message in `messages`. */
  calls: BatchCall[]
  batchAt: number
  /** Number of that message. Its results are numbered after it. */
  batchNumber: number
  /** Whether a call of the last batch failed. */
  lastBatchFailed: boolean

  guardrails: GuardrailsState
  /** Active skills, in load order. */
  skills: ActiveSkill[]
  /** Counts for the caps on tool calls since the last user message; null without caps. */
  callCounts: CallCounts | null
  /** The plan of the current step, or null. */
  plan: StepPlan | null
  /** For the next request only. */
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
    ...(input.requesters && { requesters: input.requesters }),
    ...(input.approvers && { approvers: input.approvers }),
    ...(input.expiry && { expiry: input.expiry }),
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
 * A changed copy of the context. Copied key by key, because a spread of this many keys takes ten times as long and uses
 * six times the memory.
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
  if (context.approvers) copy.approvers = context.approvers
  if (context.expiry) copy.expiry = context.expiry
  if (context.requesters) copy.requesters = context.requesters
  if (context.resends) copy.resends = context.resends
  return Object.assign(copy, patch)
}

/** Number of messages in the session. A transcript that continues from a branch has gaps. */
export function countNumbered(messages: readonly Message[]): number {
  const last = messages.at(-1)
  return Math.max(messages.length, (last && parseMessageNumber(last.id)) ?? 0)
}

/** Counters that each user message resets. */
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
