import type { AnyActorRef } from 'xstate'
import type { BudgetRemaining } from '../../../guards/budget.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import type { AgentState, RunResult } from '../../../machines/agent/run-result.js'
import type { Principal } from '../../../machines/agent/principal.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { PolicyDecision } from './policy.js'
import type { Validate } from './input-schema.js'

/**
 * The second argument of `execute`. `Context` is the app's object passed to the run.
 *
 * @example execute: ({ id }, { context, signal }: ToolExecution<{ db: Db }>) => context.db.find(id, { signal })
 */
export interface ToolExecution<Context = unknown> {
  /** Aborts when the run is cancelled or times out, or when the call exceeds its `timeoutMs`. */
  readonly signal: AbortSignal
  /** The id of this call. */
  readonly callId: string
  /** The id of the run. */
  readonly runId: string
  /** The id of the session. */
  readonly sessionId: string
  /**
   * A unique key for this call. The key stays the same if this call is executed again after a crash. Pass the key to
   * services.
   */
  readonly idempotencyKey: string
  /** The `context` of `run(input, { context })`. Never visible to the model or in the log. */
  readonly context: Context
  /** Emits `tool_progress`. Values that are not JSON are described. Ignored after the call has ended. */
  readonly progress: (value: unknown) => void
  /** The handle that this call stored before a crash. Undefined if there is no handle, or without `keepsHandle`. */
  readonly handle?: Json
  /**
   * Stores JSON in the log from which another process can continue, such as a job id. Resolves once the JSON is stored.
   * The last handle replaces earlier ones. Requires `keepsHandle: true`.
   */
  readonly keepHandle?: (handle: unknown) => Promise<void>
}

/**
 * A tool created by `defineTool`. `Input` is the input of `execute`, and `Arguments` is the input from the model. The
 * two types differ for schemas with defaults or transforms.
 */
export interface Tool<Input = unknown, Context = unknown, Name extends string = string, Arguments = Input>
  extends Omit<ToolTraits, 'delegate' | 'deferred' | 'loads' | 'skill' | 'handoff'> {
  /** Name for the model. */
  readonly name: Name
  /** Describes to the model when and how to use the tool. */
  readonly description: string
  /** JSON Schema of the input for the model. */
  readonly parameters: JsonObject
  /** Timeout for a call in milliseconds. 0 = off. If undefined, `toolCalls.timeoutMs` applies. */
  readonly timeoutMs: number | undefined
  /** Whether the caller of the run executes the tool and sends the result with `run.addToolOutput(callId, value)`. */
  readonly client: boolean
  /** Whether each call needs approval. */
  readonly needsApproval: boolean | ApprovalPredicate<Input>
  readonly validate: Validate
  /** The function that runs the tool. Absent for client tools and sub-agents. */
  readonly execute: Execute<Input, Context> | undefined
  /** Whether the tool is loaded only on demand. See `toolSearch`. */
  readonly defer?: true
  /** Set on the tool of `toolSearch()`. */
  readonly search?: ToolSearch
  /** Set on sub-agents, which `agent.asTool()` creates. */
  readonly delegate?: Delegate
  /** Set on tools that belong to the skills of an agent. */
  readonly skill?: true
  /** Set on handoffs, which `handoff()` creates. */
  readonly handoff?: HandoffLink
  /** Exists only at the type level. */
  readonly '~arguments'?: Arguments
}

type Execute<Input, Context> = Method<[input: Input, execution: ToolExecution<Context>], unknown>

/**
 * Decides whether a call needs approval, or returns a whole decision like a policy. An exception means that the call
 * needs approval. To access the app's context object, annotate it: `(input, { context }: { context: App }) => …`.
 */
export type ApprovalPredicate<Input> = Method<
  [input: Input, options: { context: unknown }],
  boolean | PolicyDecision | Promise<boolean | PolicyDecision>
>

/** Bivariant like a method, so that tools with different inputs can be in one list of `Tool`. */
type Method<Parameters extends unknown[], Result> = { method(...parameters: Parameters): Result }['method']

export interface ToolsByName {
  get(name: string): Tool | undefined
}

export interface ToolSearch {
  /** Where the schemas of loaded tools are: in the request's tools or in the search result. */
  readonly loading: 'append' | 'dispatch'
  /** Whether the provider runs the search. */
  readonly hosted: boolean
  /** With `dispatch`, the tool through which loaded tools are called. */
  readonly dispatcher: Tool | undefined
  /** The list of deferred tools for the instructions. Deterministic. */
  readonly writeIndex: (deferred: readonly Tool[]) => string
  /** Rejects with a StatewrightError if a package is missing. */
  readonly ready: () => Promise<void>
  readonly find: (input: unknown, scope: ToolSearchScope) => Promise<string>
  /** Converts a call to the dispatcher into the call that it represents. */
  readonly unwrap: (call: ToolCall) => ToolCall
  /** Restores the transcript to the form that the model wrote. Returns the same objects for the same messages. */
  readonly wrap: (messages: readonly Message[]) => readonly Message[]
}

export interface ToolSearchScope {
  readonly deferred: readonly Tool[]
  readonly maxChars: number
  readonly load: (names: readonly string[]) => void
}

/** A handoff. Agents are opaque objects at this level. */
export interface HandoffLink {
  readonly to: string
  /** Whether the agent is passed as a function, because it may be created later. */
  readonly isLater: boolean
  /** @throws {ConfigError} `invalid_handoff` for a function that returns no agent */
  readonly getParts: () => object
  readonly gather: (tools: readonly Tool[]) => Team
}

/** The agents that can receive a session. Methods throw a ConfigError if two agents have the same name. */
export interface Team {
  find(name: string): object | undefined
  /** The parts of the named agent over those of the first one. Returns the same object for the same agents. */
  mix(name: string, first: object): object | undefined
  list(): readonly (readonly [string, object])[]
  /**
   * Throws a ConfigError for agents that cannot continue a session of the first agent. `isBegun` means that agents
   * passed as functions already exist.
   */
  check(first: object, options: { isBegun: boolean }): void
}

export interface Delegate {
  /** Maximum nesting depth. 1 is directly below a run that a person started. */
  readonly maxDepth: number
  readonly tools: ToolsByName
  /** Creates the user message of the sub-agent. Throws if the input is unusable. */
  readonly messageFor: (input: unknown) => string
  /** Starts or continues the run of a call. Resolves with null if the run was started before and its log is gone. */
  readonly open: (errand: DelegateRequest) => Promise<DelegateRun | null>
}

export interface DelegateRun {
  readonly state: AgentState
  /** Settles when the run ends or rests. Rejects if the run is refused. */
  readonly result: Promise<RunResult>
  approve(callId: string, args: unknown, options: ChildAnswerOptions): void
  reject(callId: string, why: string, options: ChildAnswerOptions): void
  addToolOutput(callId: string, value: unknown, options: ChildAnswerOptions): void
  pause(): void
  resume(): void
  cancel(why: string): void
}

interface ChildAnswerOptions {
  fingerprint: string
  why?: string | undefined
  by?: Principal | undefined
}

/** A call to a sub-agent and the resources for its run. */
export interface DelegateRequest {
  name: string
  message: string
  /** The session of the sub-agent. The session is the same if the call is executed again after a crash. */
  sessionId: string
  parentSessionId: string
  /** Whether the call was started before. */
  isBegun: boolean
  parent: AnyActorRef
  /** The id of the sub-agent's actor in its parent. */
  actorId: string
  left: BudgetRemaining
  countCached: boolean
  /** Set in a fork with `askFirst`, in which the sub-agent's calls that are not read-only need approval too. */
  askFirst: true | undefined
  requesters: readonly Principal[] | undefined
  /** The run's current time. A sub-agent uses the same clock. */
  now: number
  /** The `Binding` of the sub-agent's run. Without a store, the sub-agent is kept in memory. */
  binding: object
  /** Whether the result is no longer needed. */
  isUnwanted: () => boolean
  /** Receives each state, and the result when the run ends. */
  watch: (context: AgentContext, end: RunResult | undefined) => void
  onEvent: (event: AgentEvent) => void
}

/** Carries the `context` type from an agent to its runs. */
export interface ContextCarrier<Context> {
  /** Exists only at the type level. */
  readonly '~context'?: () => Context
}

/** Options with the `context` that tools require, if any. */
export type WithContext<Options, Context> = unknown extends Context
  ? Options & { context?: unknown }
  : undefined extends Context
    ? Options & { context?: Context }
    : Options & { context: Context }

/** Whether a run may omit `context`. */
export type IsContextFree<Context> = undefined extends Context ? true : false

/** The options of a run. `context` is required if a tool needs it, and the compiler error names that key. */
export type OptionsFor<Options, Context> = unknown extends Context
  ? [options?: Options]
  : undefined extends Context
    ? [options?: Options & { context?: Context }]
    : [optionsWithContext: Options & { context: Context }]
