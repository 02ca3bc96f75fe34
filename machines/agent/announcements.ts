import type { ApprovalOutcome, PolicyVerdict } from './approvals.js'
import type { ContextStrategy } from './fit.js'
import type { Grant } from './grant.js'
import type { Json } from './json.js'
import type { AssistantMessage, RetrievedSnippet, ToolCall, UserMessage } from './messages.js'
import type { AgentState, AnyTools, Elicitation, UnansweredCall, Reason } from './run-result.js'
import type { Principal } from './principal.js'
import type { ResultStatus, ToolResult } from './batch-calls.js'
import type { ShieldAction, ShieldPoint } from './screening.js'
import type { StepSetting } from './step-plan.js'
import type { Usage } from './usage.js'

export type Emit = (announcement: EmittedEvent) => void

/** Without the stamp (`id`, `runId`, `seq`, `at`) that the runtime adds. `Tools` are the agent's tools. */
export type EmittedEvent<Tools = AnyTools> =
  | { type: 'run_started'; sessionId: string }
  /** `wakeAt` is the time when a sleeping run continues, in milliseconds since the epoch. */
  | { type: 'state_changed'; from: AgentState | null; to: AgentState; reason: Reason | null; wakeAt?: number }
  | { type: 'user_message'; message: UserMessage }
  | {
      type: 'stream_chunk'
      stepId: string
      /** Number of the attempt, 1 for the first. */
      attempt: number
      /** The new text; empty on a closing chunk. */
      text: string
      reasoning?: string
      /** Whether this is the last chunk. True exactly once per attempt. */
      finished: boolean
      /** Set on the first chunk of a later attempt. Readers must then discard the step's previous output. */
      reset?: true
    }
  /**
   * A piece of a call's arguments, sent while the model writes them. Live only, never in the log. `tool_call` has the
   * complete arguments. A `stream_chunk` with `reset` discards the pieces together with the text. Not emitted if
   * shields screen calls or answers.
   */
  | {
      type: 'tool_call_delta'
      stepId: string
      attempt: number
      callId: string
      name: string
      /** Position of the call in the answer, from 0. */
      index: number
      /** JSON text to append to the arguments; empty on the first event of a call. */
      delta: string
    }
  | { type: 'assistant_message'; stepId: string; message: AssistantMessage; partial?: true }
  | { type: 'tool_call'; stepId: string; call: ToolCall }
  | { type: 'tool_progress'; callId: string; name: keyof Tools & string; progress: unknown }
  | ({ type: 'tool_result'; callId: string } & ShownResult & ToolOutcome<Tools>)
  /** Deferred tools were loaded by the call `callId` and are available from the next request. */
  | { type: 'tools_loaded'; callId: string; names: readonly string[] }
  /** The call `callId` handed the conversation to another agent. `null` is the session's first agent. */
  | { type: 'handed_off'; callId: string; from: string | null; to: string }
  /** `prepareStep` or dynamic instructions changed the next request. `changes` lists the changed settings. */
  | {
      type: 'step_prepared'
      stepId: string
      changes: readonly StepSetting[]
      model?: string
      tools?: readonly string[]
    }
  /**
   * Usage of a request, successful or not. The `step` values add up to the `usage` of the result. `callId` identifies
   * the call whose sub-agent made the request. `callId` is absent for the run's own requests, including summaries.
   */
  | { type: 'usage'; stepId: string; callId?: string; step: Usage; run: Usage; session: Usage }
  | ChildEvent
  | {
      type: 'retry'
      stepId: string
      /** Number of the next attempt. */
      attempt: number
      delayMs: number
      code: string
      message: string
      /** The next model, if it is a different model. */
      model?: string
    }
  /** The request waits for a limiter (`createLimiter`). Live only, never in the log. */
  | {
      type: 'waiting_for_slot'
      stepId: string
      /** The id of the limiter. */
      limiter: string
      /** Number of requests before this one. */
      ahead: number
    }
  | {
      type: 'guardrail'
      guard: Reason
      action: 'nudge' | 'block' | 'halt' | 'recover'
      /** The rule that applied, a key of `guardrails.progress`. */
      rule?: string
      /** The evidence, truncated to 600 characters. */
      evidence: string
      message: string
    }
  | { type: 'budget_warning'; message: string; remainingTokens: number | null; remainingCost: number | null }
  /** From now on, requests omit `dropped` messages from the transcript. `before` and `after` are token counts. */
  | { type: 'context_fitted'; strategy: ContextStrategy; before: number; after: number; dropped: number }
  /** A policy was consulted about a call. `shadow` means that the decision has no effect. */
  | ({ type: 'policy_decided'; callId: string; name: string } & Omit<PolicyVerdict, 'failed'>)
  | ({ type: 'approval_requested' } & UnansweredCall<Tools>)
  /** A question about a call has ended. If several people must approve, `by` is the last of them. */
  | {
      type: 'approval_decided'
      callId: string
      name: string
      outcome: ApprovalOutcome
      by?: Principal
      /** The reason given with the answer. Absent while shields may still change it. */
      why?: string
      /** The id of the grant that lets the call run, or that was given with the approval. */
      grant?: string
      /** Milliseconds from the model's answer to the decision. */
      waitedMs: number
    }
  /** A grant was given or revoked, or has no uses left. */
  | { type: 'grant_changed'; grant: Grant; change: 'given' | 'used_up' | 'revoked' }
  /** A tool's server asks a person a question during a call. */
  | ({ type: 'elicitation_requested'; elicitation: Elicitation } & UnansweredCall<Tools>)
  | {
      type: 'shield'
      point: ShieldPoint
      shield: string
      action: Exclude<ShieldAction, 'allow'>
      message: string | null
      durationMs: number
      /** At `toolInput` and `toolOutput`, and at `input` for a person's reason for rejecting the call. */
      callId?: string
    }
  | { type: 'memory'; query: string; snippets: RetrievedSnippet[] }
  | StepStarted
  | StepProgress
  | StepCompleted
  /**
   * A user message was queued for the next turn, or taken from the queue by that turn's run. Live only, never in the
   * log. `messageId` is the sender's id, stored in the message's `data.clientId`.
   */
  | { type: 'message_queued'; messageId: string }
  | { type: 'message_dequeued'; messageId: string }
  | { type: 'warning'; code: string; message: string }
  | { type: 'error'; code: string; message: string; recoverable: boolean }
  | { type: 'run_ended'; state: AgentState; reason: Reason }

type ShownResult = Pick<
  ToolResult,
  'errorKind' | 'content' | 'durationMs' | 'truncated' | 'publicMessage' | 'media' | 'appData'
>

/** A tool name is typed only for successful results, because models can call unknown names. */
type ToolOutcome<Tools> =
  | { status: Ran; name: keyof Tools & string }
  | { status: Exclude<ResultStatus, Ran>; name: string }

type Ran = 'ok' | 'error' | 'timeout' | 'denied'

/**
 * A unit of work in a run. A step is a model request, a tool execution, a shield check at one point, or a memory
 * search. An inference has the same `stepId` as its chunks and messages. The ids of other steps start with that id.
 * Retried or resumed work, such as another attempt at an answer, a paused sub-agent or a resumed run, starts a new step
 * with the same id.
 *
 * Waiting for people is not a step. The step of an approved call starts when the call runs. Client calls have no step.
 * @example
 * run.events$.subscribe((event) => {
 *   if (event.type !== 'step_started') return
 *   if (event.stepType === 'inference') console.log('asks the model, attempt', event.attempt)
 *   if (event.stepType === 'tool_execution') console.log('runs', event.name)
 * })
 */
export type Step =
  | {
      stepType: 'inference'
      stepId: string
      /** 1 for the first attempt. Each attempt is a separate step. */
      attempt: number
      /** The model summarizes messages that do not fit the context window. */
      summary?: true
    }
  | { stepType: 'tool_execution'; stepId: string; callId: string; name: string }
  /** `callId` is set at `toolInput`, `toolOutput` (a step per call), and `input` for a reason of a rejection. */
  | { stepType: 'shield_call'; stepId: string; point: ShieldPoint; callId?: string }
  | { stepType: 'memory_retrieval'; stepId: string }
  /** A tool that the provider runs during the answer, such as `web_search` or `code_interpreter`. */
  | { stepType: 'hosted'; stepId: string; name: string }

export type StepType = Step['stepType']

type StepOf<Type extends StepType> = Extract<Step, { stepType: Type }>

/** A step started. Exactly one `step_completed` follows. */
export type StepStarted = {
  type: 'step_started'
  /** Milliseconds since the epoch. */
  startedAt: number
} & Step

/** Progress of a tool. Not emitted if shields screen results. Text and reasoning are sent as `stream_chunk` events. */
export type StepProgress = { type: 'step_progress'; progress: unknown } & StepOf<'tool_execution'>

/**
 * A step ended. Emitted exactly once for each `step_started`, and before `run_ended`.
 * @example
 * run.events$.subscribe((event) => {
 *   if (event.type !== 'step_completed') return
 *   console.log(event.stepType, event.outcome, event.completedAt - event.startedAt, 'ms')
 *   if (event.stepType === 'inference') console.log(event.payload.modelResponse?.usage?.totalTokens)
 * })
 */
export type StepCompleted = {
  type: 'step_completed'
  /** In milliseconds since the epoch. An inference completes after its screening with output shields. */
  startedAt: number
  completedAt: number
  /**
   * `ok`: the work finished, even if a shield returned `block`. `error`: the request failed, or the status of the call
   * is not `ok`. `cancelled`: the work was stopped before it had an outcome, or its sub-agent rests.
   */
  outcome: 'ok' | 'error' | 'cancelled'
  /**
   * The reason when `outcome` is `error`. For a call, set if the tool threw; `toolResponse` is the text that the model
   * reads. `cause` is the thrown value with its `stack`, only on live events in the process that threw, never in logs
   * or JSON.
   */
  error?: { code: string; message: string; cause?: unknown }
} & (
  | (StepOf<'inference'> & { payload: { modelResponse: ModelStepResponse | null } })
  | (StepOf<'tool_execution'> & { payload: { toolCall: ToolCall; toolResponse: ToolStepResponse | null } })
  | (StepOf<'shield_call'> & { payload: { violation: ShieldViolation | null } })
  | (StepOf<'memory_retrieval'> & { payload: { retrievedContext: RetrievedSnippet[] | null } })
  /** The call as reported by the provider. Null if shields screen calls or answers, or if the call did not end. */
  | (StepOf<'hosted'> & { payload: { item: Json | null } })
)

/** The response to one model request. */
export interface ModelStepResponse {
  /** With output shields, the cleared text, or null. */
  text: string | null
  /** The refusal text, cleared like `text`. Absent if the model did not refuse or the text is not cleared. */
  refusal?: string | null
  /** Null if the text is not cleared or tool-input shields screen calls. Cleared calls are emitted as `tool_call`. */
  toolCalls: ToolCall[] | null
  finishReason: string | null
  /** The provider's name for the model that answered. */
  model: string | null
  usage: Usage | null
}

export interface ToolStepResponse extends Pick<ToolResult, 'status' | 'errorKind' | 'truncated'> {
  /** Null if tool-output shields screen results. Cleared results are emitted as `tool_result`. */
  content: string | null
}

/** The shields' objections to a piece of content. */
export interface ShieldViolation {
  /** The most severe action. */
  action: Exclude<ShieldAction, 'allow'>
  /** A message for people, or null. */
  message: string | null
  /** Ids of the shields that objected. */
  shields: string[]
}

/** An event from a sub-agent. The type is an interface because TypeScript 5 reports the union as circular. */
export interface ChildEvent {
  type: 'child_event'
  /** Ids of the calls that lead to the sub-agent, separated by slashes. */
  callId: string
  /** Names of the tools that lead to the sub-agent, outermost first. */
  path: string[]
  event: AgentEvent
}

/**
 * Where and when an event happened. `id` is unique. `seq` counts from 1 without gaps. When another process resumes a
 * stored run, numbering continues after the last rest. If the earlier process was killed while working, numbering
 * continues after the next full million.
 */
export interface Stamp {
  id: string
  runId: string
  seq: number
  /** Milliseconds since the epoch. */
  at: number
}

/**
 * An event that a run emits. The union is closed and discriminated by `type`. `Tools` are the agent's tools.
 * @example
 * for await (const event of run) {
 *   if (event.type === 'stream_chunk') process.stdout.write(event.text)
 *   if (event.type === 'tool_result') console.log(event.name, event.status, event.durationMs)
 * }
 */
export type AgentEvent<Tools = AnyTools> = EmittedEvent<Tools> & Stamp
