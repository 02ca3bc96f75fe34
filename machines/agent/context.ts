import { omitUndefined } from '../../guards/lib/json.js'
import type { CallCounts } from '../../guards/call-caps.js'
import type { GuardrailsState } from '../../guards/state.js'
import type { ResponseKind } from '../../guards/completion.js'
import type { AgentConfig } from './config.js'
import type { Fit, CompactionOutput } from './fit.js'
import type { Approvers, Expiry } from './approvals.js'
import type { Grant, NewGrant } from './grant.js'
import type { Principal } from './principal.js'
import {
  type Message,
  type RetrievedSnippet,
  type UserMessage,
  parseMessageNumber,
  type MediaPart,
} from './messages.js'
import type { AgentState, Reason, RunFailure, TurnEnd } from './run-result.js'
import type { Refusal } from './refusals.js'
import type { BatchCall, ToolTraits, ChildQuestion, ToolResult } from './batch-calls.js'
import { type ActiveSkill, findActiveSkills, type SkillChange } from './skills.js'
import type {
  UnclearedAnswer,
  ContinuedAnswer,
  CallScreening,
  InputScreening,
  OutputScreening,
} from './screening.js'
import type { StepPlan } from './step-plan.js'
import { noUsage, type Usage } from './usage.js'
import type { DoneActorEvent, ErrorActorEvent } from 'xstate'
import type { UserGuardsOutput } from '../../guards/user-state.js'
import type { Json } from './json.js'
import type { ModelActorError, ModelOutput } from './model-response.js'

export interface Features {
  inputShields: boolean
  outputShields: boolean
  callShields: boolean
  resultShields: boolean
  retrieval: boolean
  fitting: boolean
  userGuards: boolean
  /** Whether answers must match a schema. */
  structuredOutput: boolean
  /** Whether user code decides after each batch if the run ends. Defaults to false. */
  stopWhen?: boolean
  /** Whether user code prepares each request. Defaults to false. */
  prepareStep?: boolean
}

/** A user message that is not in the transcript yet. */
export type NewMessage = Pick<UserMessage, 'content'> & Partial<Pick<UserMessage, 'data'>>

/** Settings of a fork. */
export interface ForkTerms {
  /** Replaces the instructions of the agent and of its steps. */
  instructions?: string
  /** Whether calls that are not read-only need approval, because the original may already have made them. */
  askFirst?: true
}

/** Session state passed from one run to the next, as plain JSON. */
export interface SessionState {
  messages: Message[]
  /** Totals of all runs in the session. */
  usage: Usage
  guardrails: GuardrailsState
  /** Whether the session's budget warning has been emitted. */
  warnedOfBudget: boolean
  /** The messages that requests omit. Null if everything fits. */
  fit: Fit | null
  /** Loaded deferred tools, in load order. Absent if there are none. */
  loaded?: readonly string[]
  /** The settings of a fork. Absent if the session is not a fork or the fork has no settings. */
  terms?: ForkTerms
  /** The ends of earlier runs. Absent if all of them ended with complete answers. */
  turnEnds?: readonly TurnEnd[]
  /** Content refused by providers. Absent if there is none. */
  refusals?: readonly Refusal[]
  /** Approvals for later calls. Absent if there are none. */
  grants?: readonly Grant[]
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
  input: NewMessage[]
  /** The handoff name of the current agent. Absent for the session's first agent. */
  speaker?: string
  /** The authors of the input. For a sub-agent, also the authors of its parents' messages. Absent if unknown. */
  requesters?: readonly Principal[]
  /** Who may approve calls, according to this agent and its parents. Absent if anyone may approve them. */
  approvers?: readonly Approvers[]
  /** The time limit for questions, set by this agent and its parents. Absent if there is no limit. */
  expiry?: Expiry
}

/** The verdict of a guard. The chart decides how to act on it. */
export interface GuardrailVerdict {
  guard: Reason
  /** Id of the user guard, if `guard` is `user_guard`. */
  userGuard?: string
  /** The rule that applied, for guards with several rules. */
  rule?: string
  evidence: string
  message: string
  onHalt: 'error' | 'pause'
  /** The concluding request before a pause. Absent if the guard does not ask for one. */
  lastWords?: string
}

/** The machine's context, as plain JSON. Guards and actions read nothing else. */
export interface AgentContext
  extends Pick<SessionState, 'fit' | 'terms' | 'turnEnds' | 'refusals' | 'grants' | 'guardrails'>,
    Pick<AgentInput, 'runId' | 'sessionId' | 'config' | 'tools' | 'features' | 'approvers' | 'expiry'> {
  /** The handoff name of the current agent, or null for the session's first agent. */
  speaker: string | null

  /** The transcript. Its last batch is complete, in call order, whenever the run rests. */
  messages: Message[]
  /** Number of messages in the session. */
  lastMessageNumber: number
  /** Loaded deferred tools, in load order. */
  loaded: readonly string[]
  /** The authors of the run's input, replies and steering. Absent if unknown. */
  requesters?: readonly Principal[]
  /** User messages that are not in the transcript yet. Read at the start of the run and after each reply. */
  inbox: NewMessage[]
  /** Snippets for the current user message, added to each request. Null before the search. */
  retrieved: RetrievedSnippet[] | null
  steering: string[]

  /** The top-level state, for `state_changed.from`. */
  state: AgentState | null
  /** Why the run rests or ended. Null while the run is active. */
  reason: Reason | null
  error: RunFailure | null
  /** Whether the run pauses at its next safe point. A string is the reason for the pause. */
  pausing: boolean | 'approval_expired'

  steps: number
  /** Number of attempts at the current step, starting at 1. */
  attempt: number
  /** Attempts that failed because of a rate limit. */
  rateLimits: number
  /** Attempts that failed because of refused content. Absent if there are none. */
  resends?: number
  backOffUntil: number
  /** The time of the deadline. Null without a time limit. */
  deadline: number | null
  /** Remaining milliseconds while the clock is stopped. Null while the clock runs. */
  timeLeft: number | null
  /** The wake time of a run that sleeps or is about to sleep. Null for any other run. */
  wakeAt: number | null

  usage: { run: Usage; session: Usage }
  warnedOfBudget: boolean

  response: ResponseKind | null
  /** Text of a truncated answer that is being continued. */
  continuedText: string
  /** As the model wrote it, because output shields screen the joined answer. */
  unscreenedText: ContinuedAnswer | null
  output: string
  /** Recoveries since the last user message: continuations, re-prompts, retries and repairs. */
  recoveries: number
  reprompts: number
  emptyRetries: number
  outputRepairs: number
  /** Why the last answer does not match the output schema, or null. */
  outputProblem: string | null

  pendingAnswer: UnclearedAnswer | null
  /** The step of an answer whose events are held back for screening, or null. */
  unemittedStep: string | null

  /** The current batch, and the index of its message in `messages`. */
  calls: BatchCall[]
  batchAt: number
  /** Number of the batch's message. The results have the numbers that follow. */
  batchNumber: number
  lastBatchFailed: boolean

  skills: ActiveSkill[]
  /** Counts for the caps on tool calls since the last user message; null without caps. */
  callCounts: CallCounts | null
  plan: StepPlan | null
  /** Messages from guards for the next request only. */
  nudges: string[]
  verdict: GuardrailVerdict | null
}

/**
 * Created once, because XState's `transition` also asks for a context without input each time, and a new error costs
 * more than the rest.
 */
const missingInput = new TypeError("The agent's machine needs an input. Create it with createInput().")

export function createContext(input: AgentInput): AgentContext {
  if ((input as AgentInput | undefined) === undefined) throw missingInput
  const { timeoutMs } = input.config.limits
  const { terms, turnEnds, refusals, grants, requesters, approvers, expiry } = input
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
    ...omitUndefined({ terms, turnEnds, refusals, grants, requesters, approvers, expiry }),
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

/** Copies key by key because a spread of this many keys takes ten times as long and uses six times the memory. */
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
  if (context.grants) copy.grants = context.grants
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

/** Fields of all events. Each event includes its time, because the machine has no clock. */
interface EventBase {
  /** Milliseconds since the epoch. The runtime adds the time if it is missing. */
  now?: number
  /** The event contains uncleared content. The content is masked when the log is displayed. */
  withheld?: true
  /** Number of the inbox message that delivered the event. */
  inbox?: number
  /** The sender's idempotency key. Messages with the same key are processed once. */
  key?: string
  /** The person or program that sent the event. */
  by?: Principal
}

/** What was received before the request was stopped. Added by the runtime to the event that stopped it. */
export interface PartialAnswer {
  text: string
  /** Estimated usage, or null. */
  usage: Usage | null
}

/**
 * An event that people and programs send to a run.
 * @example
 * const stop: ControlEvent = { type: 'CANCEL', why: 'The user has closed the page.' }
 * createActor(agent.machine, { input: 'Go.' }).start().send(stop)
 */
export type ControlEvent = EventBase &
  (
    | { type: 'CANCEL'; why?: string; partial?: PartialAnswer }
    | { type: 'PAUSE' }
    /** Ends a pause, or withdraws one that has not taken effect. With `at` (milliseconds since the epoch), later. */
    | { type: 'RESUME'; at?: number }
    /** Guidance for the model at the next safe point. Resets no counter. */
    | { type: 'STEER'; text: string }
    /** The next user message of an interactive run. */
    | { type: 'REPLY'; messages: NewMessage[] }
    /** `arguments` is JSON text that replaces the model's. `fingerprint` and `messageId` identify the call. */
    | {
        type: 'APPROVE'
        callId: string
        arguments?: string
        /** The reason. It is stored in the log, but the model does not read it. */
        why?: string
        fingerprint?: string
        messageId?: string
        /** A grant that also approves later calls. */
        grant?: NewGrant
      }
    /** Approves later calls to a tool. */
    | { type: 'GRANT'; tool: string; grant: NewGrant }
    /** Ends a grant, or withdraws the sender's approval of a call that has not started. */
    | { type: 'REVOKE'; grant: string }
    | { type: 'REVOKE'; callId: string; fingerprint?: string; messageId?: string }
    | { type: 'REJECT'; callId: string; why: string; fingerprint?: string; messageId?: string }
    /** Sent by the runtime at the right time. No effect if it is sent earlier. */
    | { type: 'APPROVAL_EXPIRED' }
    /** The result of a call that the client runs. */
    | {
        type: 'TOOL_OUTPUT'
        callId: string
        content: string
        media?: MediaPart[]
        isError?: boolean
        fingerprint?: string
        messageId?: string
      }
  )

/** An event from the machine's actors. */
export type ActorEvent = EventBase &
  /** `usage` is the sub-agent usage that has not been reported yet. */
  (
    | { type: 'TOOL_RESULT'; callId: string; result: ToolResult; usage?: Usage }
    /** The usage of a sub-agent since its last report. */
    | { type: 'CHILD_USAGE'; callId: string; usage: Usage }
    /** Waits for answers, or pauses without questions, until `wakeAt`. A tool gets `memo` back with the answers. */
    | { type: 'CHILD_WAITING'; callId: string; questions: ChildQuestion[]; wakeAt?: number; memo?: Json }
    /** A call found or used deferred tools. The tools are loaded before the call's result is added. */
    | { type: 'TOOLS_LOADED'; callId: string; names: readonly string[] }
    /** A running call loads or unloads a skill. The change takes effect when the call succeeds. */
    | { type: 'SKILL_CHANGED'; callId: string; change: SkillChange }
    /** A running call stores a handle that lets another process continue it. */
    | { type: 'HANDLE_SAVED'; callId: string; handle: Json }
    /** Takes effect when the call succeeds and the batch ends. */
    | { type: 'HANDED_OFF'; callId: string; to: string; tools: Record<string, ToolTraits> }
    /** The grant of a call ended before the call could start. */
    | { type: 'GRANT_ENDED'; callId: string }
    | { type: 'BATCH_DONE' }
    | { type: 'DEADLINE'; partial?: PartialAnswer }
    /** A new process re-enters the substate. `tools` are its tools, if they differ. */
    | { type: 'RESUMED'; tools?: Record<string, ToolTraits> }
    /** Another process can resume the run. `notStarted` lists the calls that were passed to tools but did not run. */
    | { type: 'RELEASED'; usage?: Usage; notStarted?: readonly string[] }
    /** The log could not be written, so later events would be lost. */
    | { type: 'STORE_FAILED'; failure: { code: string; message: string }; partial?: PartialAnswer }
    | ActorEnd[keyof ActorEnd]
    | { type: 'xstate.done.actor.backOff' | 'xstate.done.actor.tools'; actorId: string; output?: unknown }
    | Broken<'backOff' | 'tools'>
  )

/** What each invoked actor returns, by its id. */
interface ActorOutputs {
  model: ModelOutput
  conclusion: ModelOutput
  fitting: CompactionOutput
  inputShields: InputScreening[]
  outputShields: OutputScreening
  callShields: CallScreening[]
  resultShields: CallScreening[]
  retrieval: RetrievedSnippet[]
  plan: StepPlan
  callGuards: UserGuardsOutput
  resultGuards: UserGuardsOutput
}

type ActorEnd = {
  [Id in keyof ActorOutputs]:
    | (DoneActorEvent<ActorOutputs[Id], Id> & { type: `xstate.done.actor.${Id}` })
    | Broken<Id>
}

/** Only failures of `model` and `conclusion` are retried. Each other failure ends the run. */
type Broken<Ids extends string> = {
  [Id in Ids]: ErrorActorEvent<ModelActorError, Id> & { type: `xstate.error.actor.${Id}` }
}[Ids]

export type AgentMachineEvent = ControlEvent | ActorEvent

/** The time of an event. The initial event stores the time in its input. */
export function getEventTime(event: { now?: number; input?: { now?: number } }): number {
  return event.now ?? event.input?.now ?? 0
}
