import type { ContextStrategy } from './fit.js'
import type { Json, JsonObject } from './json.js'
import type { AssistantMessage, MediaPart, RetrievedSnippet, ToolCall, UserMessage } from './messages.js'
import type { AgentState, AnyTools, Elicitation, UnansweredCall, Reason } from './run-result.js'
import type { ResultStatus, ToolErrorKind } from './batch-calls.js'
import type { ShieldAction, ShieldPoint } from './screening.js'
import type { StepSetting } from './step-plan.js'
import type { Usage } from './usage.js'

/**
 * An event of a run, without the stamp (`id`, `runId`, `seq`, `at`) that the runtime adds. `Tools` are the agent's:
 * their names stand where only a tool that exists can be meant.
 */
export type EmittedEvent<Tools = AnyTools> =
  | { type: 'run_started'; sessionId: string }
  /** `wakeAt`: when a run goes on that sleeps, in milliseconds since the epoch. */
  | { type: 'state_changed'; from: AgentState | null; to: AgentState; reason: Reason | null; wakeAt?: number }
  | { type: 'user_message'; message: UserMessage }
  | {
      type: 'stream_chunk'
      stepId: string
      /** 1 for the first attempt of a step. */
      attempt: number
      /** The new text; empty on a closing chunk. */
      text: string
      reasoning?: string
      /** True exactly once an attempt, however it ends. */
      finished: boolean
      /** True on the first chunk of a later attempt: forget what this step has shown so far. */
      reset?: true
    }
  /**
   * The model writes the arguments of a call. Only live, never in the log; `tool_call` has the whole arguments. A
   * `stream_chunk` with `reset` takes it back, as it takes back text. Not emitted where shields screen calls or answers.
   */
  | {
      type: 'tool_call_delta'
      stepId: string
      attempt: number
      callId: string
      name: string
      /** The place of the call in the answer, from 0. */
      index: number
      /** JSON text, added to the arguments so far; empty on the first event of a call. */
      delta: string
    }
  | { type: 'assistant_message'; stepId: string; message: AssistantMessage; partial?: true }
  | { type: 'tool_call'; stepId: string; call: ToolCall }
  | { type: 'tool_progress'; callId: string; name: keyof Tools & string; progress: unknown }
  | ({
      type: 'tool_result'
      callId: string
      /** Set when `status` is `error`, `timeout` or `denied`: whether the failure may pass by itself. */
      errorKind?: ToolErrorKind
      content: string
      durationMs: number
      truncated?: true
      /** What its `ToolError` says to pages, in place of `content`. */
      publicMessage?: string
      /** The pictures, sounds and documents that it returned; `content` has a line in words for each. */
      media?: MediaPart[]
      /**
       * What the MCP server of the tool sent for the app, with up to 64 K characters: `_meta` and `structuredContent`. No model reads it.
       * Left out where shields screen results.
       */
      appData?: JsonObject
    } & ToolOutcome<Tools>)
  /** Deferred tools are loaded: the model can call them from the next request on. `callId`: the call that has loaded them. */
  | { type: 'tools_loaded'; callId: string; names: readonly string[] }
  /**
   * Another agent speaks from the next request on. `from` and `to` are as handoffs call the agents; null is the session's first agent.
   * `callId`: the call that has handed the conversation over.
   */
  | { type: 'handed_off'; callId: string; from: string | null; to: string }
  /**
   * `prepareStep`, or instructions that are a function, have decided something about the next request. `changes`: what; `model` and
   * `tools` are the names, where they are among it.
   */
  | {
      type: 'step_prepared'
      stepId: string
      changes: readonly StepSetting[]
      model?: string
      tools?: readonly string[]
    }
  /**
   * What was used, whether or not an answer came of it; the `step`s of a run add up to its result's `usage`. `callId`:
   * the call whose sub-agent has used it. Absent: a request of the run's own, that of a summary included.
   */
  | { type: 'usage'; stepId: string; callId?: string; step: Usage; run: Usage; session: Usage }
  | ChildEvent
  | {
      type: 'retry'
      stepId: string
      /** The attempt that comes next. */
      attempt: number
      delayMs: number
      code: string
      message: string
      /** The model that is asked next, where it is another. */
      model?: string
    }
  /** The request waits for a limiter (`createLimiter`) to let it go. Only live, never in the log. */
  | {
      type: 'waiting_for_slot'
      stepId: string
      /** The id of the limiter. */
      limiter: string
      /** How many requests it lets go before this one. */
      ahead: number
    }
  | {
      type: 'guardrail'
      guard: Reason
      action: 'nudge' | 'block' | 'halt' | 'recover'
      /** Which rule of the guard speaks, where it has several: a key of `guardrails.progress`. */
      rule?: string
      /** What was seen, cut to 600 characters. */
      evidence: string
      message: string
    }
  | { type: 'budget_warning'; message: string; remainingTokens: number | null; remainingCost: number | null }
  /** Requests leave `dropped` messages of the transcript out from here on; `before` and `after` are tokens. */
  | { type: 'context_fitted'; strategy: ContextStrategy; before: number; after: number; dropped: number }
  | ({ type: 'approval_requested' } & UnansweredCall<Tools>)
  /** The server of a tool asks a person something in the middle of the call. */
  | ({ type: 'elicitation_requested'; elicitation: Elicitation } & UnansweredCall<Tools>)
  | {
      type: 'shield'
      point: ShieldPoint
      shield: string
      action: Exclude<ShieldAction, 'allow'>
      message: string | null
      durationMs: number
      /** At `toolInput` and `toolOutput`, and at `input` where it is about why a person refuses a call. */
      callId?: string
    }
  /** What memory found for a user message. */
  | { type: 'memory'; query: string; snippets: RetrievedSnippet[] }
  | StepStarted
  | StepProgress
  | StepCompleted
  /**
   * A user message waits for the next turn; the run that says it begins with the other event. Only live, never in the log.
   * `messageId`: the sender's id, which is `data.clientId` of the message that is said.
   */
  | { type: 'message_queued'; messageId: string }
  | { type: 'message_dequeued'; messageId: string }
  | { type: 'warning'; code: string; message: string }
  | { type: 'error'; code: string; message: string; recoverable: boolean }
  | { type: 'run_ended'; state: AgentState; reason: Reason }

/** Only what has run is known to be a tool: the model may call what there is not. */
type ToolOutcome<Tools> =
  | { status: Ran; name: keyof Tools & string }
  | { status: Exclude<ResultStatus, Ran>; name: string }

type Ran = 'ok' | 'error' | 'timeout' | 'denied'

/**
 * A piece of the run's work, from its start to its end: a request to the model, a call that a tool carries out, a look
 * of the shields at one point, a question to memory. An inference goes by the `stepId` of its chunks and messages; the
 * ids of the others begin with that of the inference that they belong to. Work that is taken up again — another attempt
 * at an answer, a sub-agent that was paused, a run that was resumed — is started again under the same id.
 *
 * What waits for people has no step: an approved call begins when it runs, and a call of the client's own has none.
 *
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
      /** 1 for the first attempt. Each attempt is started and completed by itself. */
      attempt: number
      /** The model is asked to sum up what the context window has no room for. */
      summary?: true
    }
  | { stepType: 'tool_execution'; stepId: string; callId: string; name: string }
  /**
   * `callId`: at `toolInput` and `toolOutput`, where each call has a step of its own, and at `input` where it is about
   * why a person refuses a call.
   */
  | { stepType: 'shield_call'; stepId: string; point: ShieldPoint; callId?: string }
  | { stepType: 'memory_retrieval'; stepId: string }
  /** A tool that the provider itself runs, while the model answers: `web_search`, `code_interpreter`, … */
  | { stepType: 'hosted'; stepId: string; name: string }

/** What kinds of work a run consists of. */
export type StepType = Step['stepType']

type StepOf<Type extends StepType> = Extract<Step, { stepType: Type }>

/** Work begins; exactly one `step_completed` follows. */
export type StepStarted = {
  type: 'step_started'
  /** Milliseconds since the epoch. */
  startedAt: number
} & Step

/**
 * The progress of a tool; not emitted where shields screen results. Text and reasoning of an inference come only as
 * `stream_chunk`s with its `stepId`.
 */
export type StepProgress = { type: 'step_progress'; progress: unknown } & StepOf<'tool_execution'>

/**
 * Exactly one for each `step_started`, and before `run_ended`.
 *
 * @example
 * run.events$.subscribe((event) => {
 *   if (event.type !== 'step_completed') return
 *   console.log(event.stepType, event.outcome, event.completedAt - event.startedAt, 'ms')
 *   if (event.stepType === 'inference') console.log(event.payload.modelResponse?.usage?.totalTokens)
 * })
 */
export type StepCompleted = {
  type: 'step_completed'
  /**
   * Both in milliseconds since the epoch. An inference is completed when its response has come; where output shields
   * screen it, the event follows the screening.
   */
  startedAt: number
  completedAt: number
  /**
   * `ok`: it has done its work, whatever came out (also when a shield says `block`). `error`: the request failed, or
   * the result of the call is none that is `ok`. `cancelled`: it was stopped before it had an outcome, or its sub-agent
   * rests.
   */
  outcome: 'ok' | 'error' | 'cancelled'
  /**
   * Why the outcome is `error`. Of a call it is there when its tool threw; `toolResponse` says what the model reads.
   * `cause` is the thrown value, with its `stack`: only in live events of the process where it was thrown, never in
   * logs or JSON.
   */
  error?: { code: string; message: string; cause?: unknown }
} & (
  | (StepOf<'inference'> & { payload: { modelResponse: ModelStepResponse | null } })
  | (StepOf<'tool_execution'> & { payload: { toolCall: ToolCall; toolResponse: ToolStepResponse | null } })
  | (StepOf<'shield_call'> & { payload: { violation: ShieldViolation | null } })
  | (StepOf<'memory_retrieval'> & { payload: { retrievedContext: RetrievedSnippet[] | null } })
  /** The call as the provider reports it; null where shields screen calls or answers, and where it did not end. */
  | (StepOf<'hosted'> & { payload: { item: Json | null } })
)

/** What a model answered to one request. */
export interface ModelStepResponse {
  /** With output shields: the cleared text; null when they have not cleared it. */
  text: string | null
  /** As `text`; absent when the model has not refused, and when output shields have not cleared it. */
  refusal?: string | null
  /**
   * Null where tool-input shields screen calls (cleared calls come as `tool_call`), and where output shields have not
   * cleared the text beside them.
   */
  toolCalls: ToolCall[] | null
  finishReason: string | null
  /** The model that answered, as the provider names it. */
  model: string | null
  /** Null when it is not known. */
  usage: Usage | null
}

/** The outcome of one call. */
export interface ToolStepResponse {
  /** `ok` is the only success. */
  status: ResultStatus
  /** Set when `status` is `error`, `timeout` or `denied`: whether the failure may pass by itself. */
  errorKind?: ToolErrorKind
  /** Null where tool-output shields screen results: cleared results come as `tool_result`. */
  content: string | null
  /** True when `content` was cut to `toolCalls.maxResultChars`. */
  truncated?: true
}

/** The objections of the shields to a content. */
export interface ShieldViolation {
  /** The gravest of them all. */
  action: Exclude<ShieldAction, 'allow'>
  /** In words for people; null when none had any. */
  message: string | null
  /** Those that did not allow it. */
  shields: string[]
}

/**
 * Something has happened in a sub-agent. An interface: as a part of the union, TypeScript 5 finds it circular.
 */
export interface ChildEvent {
  type: 'child_event'
  /** The ids of the calls that lead to it, with slashes in between. */
  callId: string
  /** The tools that lead to it, outermost first. */
  path: string[]
  /** Of a sub-agent's own sub-agent: what happened there. */
  event: AgentEvent
}

/**
 * Where and when an event happened. `id` is unique. `seq` counts from 1 without gaps; a process that resumes the run
 * from a store continues the numbers: after the last number of the last rest, or, where a process was killed at work,
 * after the next full million.
 */
export interface Stamp {
  id: string
  runId: string
  seq: number
  /** Milliseconds since the epoch. */
  at: number
}

/**
 * An event that a run emits: one closed union, distinguished by `type`. `Tools` are the agent's.
 *
 * @example
 * for await (const event of run) {
 *   if (event.type === 'stream_chunk') process.stdout.write(event.text)
 *   if (event.type === 'tool_result') console.log(event.name, event.status, event.durationMs)
 * }
 */
export type AgentEvent<Tools = AnyTools> = EmittedEvent<Tools> & Stamp
