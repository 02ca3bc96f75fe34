import type { AnyActorRef } from 'xstate'
import type { BudgetRemaining } from '../../../guards/budget.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import type { AgentState, RunResult } from '../../../machines/agent/run-result.js'
import type { Principal } from '../../../machines/agent/principal.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { SharedBudget } from '../budgets/shared-budget.js'
import type { PriceBook } from '../prices/price-book.js'
import type { TelemetryParent } from '../telemetry/telemetry.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Policy, PolicyDecision } from './policy.js'
import type { Validate } from './input-schema.js'

/**
 * The second argument of `execute`. `Context` is the app's object passed to the run.
 *
 * @example execute: ({ id }, { context, signal }: ToolExecution<{ db: Db }>) => context.db.find(id, { signal })
 */
export interface ToolExecution<Context = unknown> {
  /** Aborts when the run is canceled or times out, or when the call exceeds its `timeoutMs`. */
  readonly signal: AbortSignal
  /** The id of this call. */
  readonly callId: string
  /** The id of the run. */
  readonly runId: string
  /** The id of the session. */
  readonly sessionId: string
  /** Stable if this call is executed again after a crash, else unique. Pass it to services. */
  readonly idempotencyKey: string
  /** `run(input, { context })`. Never visible to the model or the log. */
  readonly context: Context
  /** Emits `tool_progress`. Values that are not JSON are described. Ignored after the call has ended. */
  readonly progress: (value: unknown) => void
  /** The handle that this call stored before a crash. Undefined if there is none, or without `keepsHandle`. */
  readonly handle?: Json
  /**
   * Stores JSON in the log for a continuation in another process, such as a job id. Resolves once it is stored;
   * the last handle wins. Requires `keepsHandle: true`.
   */
  readonly keepHandle?: (handle: unknown) => Promise<void>
}

/**
 * A tool created by `defineTool`. `Input` is the input of `execute`, `Arguments` the input from the model. They differ
 * for schemas with defaults or transforms.
 */
export interface Tool<Input = unknown, Context = unknown, Name extends string = string, Arguments = Input>
  extends Omit<ToolTraits, 'delegate' | 'deferred' | 'loads' | 'skill' | 'handoff'> {
  /** Name for the model. */
  readonly name: Name
  /** Describes to the model when and how to use the tool. */
  readonly description: string
  /** JSON Schema of the input for the model. */
  readonly parameters: JsonObject
  /** Milliseconds. 0 = off. Undefined for `toolCalls.timeoutMs`. */
  readonly timeoutMs: number | undefined
  /** Executed by the caller of the run, who answers with `run.addToolOutput(callId, value)`. */
  readonly client: boolean
  /** Whether each call needs approval. */
  readonly needsApproval: boolean | ApprovalPredicate<Input>
  readonly validate: Validate
  /** Absent for client tools and sub-agents. */
  readonly execute: Execute<Input, Context> | undefined
  /** Only loaded on demand; see `toolSearch`. */
  readonly defer?: true
  /** Set on the tool of `toolSearch()`. */
  readonly search?: ToolSearch
  /** Set on sub-agents, which `agent.asTool()` creates. */
  readonly delegate?: Delegate
  /** Belongs to the skills of an agent. */
  readonly skill?: true
  /** Set on handoffs, which `handoff()` creates. */
  readonly handoff?: HandoffLink
  /** Type-level only. */
  readonly '~arguments'?: Arguments
}

type Execute<Input, Context> = Method<[input: Input, execution: ToolExecution<Context>], unknown>

/**
 * Whether this call needs approval, or a whole decision, as of a policy. An exception counts as yes. Annotate `context`, the app's object: `(input, {
 * context }: { context: App }) => …`.
 */
export type ApprovalPredicate<Input> = Method<
  [input: Input, options: { context: unknown }],
  boolean | PolicyDecision | Promise<boolean | PolicyDecision>
>

/** Bivariant like methods, so that tools with different inputs fit one list of `Tool`. */
type Method<Parameters extends unknown[], Result> = { method(...parameters: Parameters): Result }['method']

export interface ToolsByName {
  get(name: string): Tool | undefined
}

export interface ToolSearch {
  /** Position of the schemas of loaded tools, in the request's tools or in the search result. */
  readonly loading: 'append' | 'dispatch'
  /** The provider runs the search. */
  readonly hosted: boolean
  /** The tool that calls loaded tools, with `dispatch`. */
  readonly dispatcher: Tool | undefined
  /** The list of deferred tools for the instructions. Deterministic. */
  readonly writeIndex: (deferred: readonly Tool[]) => string
  /** Loads its packages. Rejects with a StatewrightError if one is missing. */
  readonly ready: () => Promise<void>
  /** Returns the search result and loads the tools. */
  readonly find: (input: unknown, scope: ToolSearchScope) => Promise<string>
  /** Converts a dispatcher call to the call that it represents. Returns other calls unchanged. */
  readonly unwrap: (call: ToolCall) => ToolCall
  /** The transcript as the model wrote it. The same objects for the same messages. */
  readonly wrap: (messages: readonly Message[]) => readonly Message[]
}

export interface ToolSearchScope {
  readonly deferred: readonly Tool[]
  /** Maximum characters of a result. */
  readonly maxChars: number
  readonly load: (names: readonly string[]) => void
}

/** A handoff. Agents are opaque objects here. */
export interface HandoffLink {
  /** Name of the other agent in the session. */
  readonly to: string
  /** The agent is given as a function, because it may be created later. */
  readonly isLater: boolean
  /** @throws {ConfigError} `invalid_handoff` for a function that returns no agent */
  readonly getParts: () => object
  /** Collects the agents that these tools can reach. */
  readonly gather: (tools: readonly Tool[]) => Team
}

/** The agents that can receive a session. Methods throw a ConfigError if two agents have the same name. */
export interface Team {
  find(name: string): object | undefined
  /** The parts of the first agent, overridden by the parts of the named agent. The same object for the same agents. */
  mix(name: string, first: object): object | undefined
  /** Names and parts. */
  list(): readonly (readonly [string, object])[]
  /**
   * Throws a ConfigError for agents that cannot continue a session of the first agent. `isBegun` means that agents
   * given as functions exist.
   */
  check(first: object, options: { isBegun: boolean }): void
}

/** A sub-agent. */
export interface Delegate {
  /** The deepest allowed level; 1 is directly below a run started by a person. */
  readonly maxDepth: number
  readonly tools: ToolsByName
  /** Creates the user message of the sub-agent. Throws for an unusable input. */
  readonly messageFor: (input: unknown) => string
  /** Starts or continues the run of a call. Null if the run was started before and its log is gone. */
  readonly open: (errand: DelegateRequest) => Promise<DelegateRun | null>
}

export interface DelegateRun {
  readonly state: AgentState
  /** Its end or its next pause. Rejects if it is refused. */
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

/** A call of a sub-agent and the resources of its run. */
export interface DelegateRequest {
  name: string
  message: string
  /** The session of the sub-agent. Stable if the call is executed again after a crash. */
  sessionId: string
  parentSessionId: string
  /** The call was started before. */
  isBegun: boolean
  /** The parent actor, and the id below it. */
  parent: AnyActorRef
  actorId: string
  /** The store of the run. Without it, the sub-agent is in memory. */
  store: SessionStore | undefined
  left: BudgetRemaining
  countCached: boolean
  /** In a fork with `askFirst`, calls of the sub-agent that are not read-only also need approval. */
  askFirst: true | undefined
  /** The authors of the words of the run. */
  requesters: readonly Principal[] | undefined
  /** The terms of approvals of the run. */
  termsAbove: Pick<AgentContext, 'approvers' | 'expiry'>
  /** The time of the run. A sub-agent has the same clock. */
  now: number
  /** The policies of the run, and the names that lead to the sub-agent. */
  policiesAbove: { policies: readonly Policy[]; path: readonly string[] } | undefined
  prices: PriceBook
  /** Shared budgets of the run, if any. */
  budgets: readonly SharedBudget[] | undefined
  depth: number
  maxDepth: number
  context: unknown
  above: TelemetryParent | undefined
  /** Whether the result is no longer needed. */
  isUnwanted: () => boolean
  /** Called with each state of its run. */
  watch: (context: AgentContext) => void
  /** Called with each of its events. */
  onEvent: (event: AgentEvent) => void
}

/** Carries the `context` type from an agent to its runs. */
export interface ContextCarrier<Context> {
  /** Type-level only. */
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

/** The options of a run. `context` is required if a tool needs it; the compiler error names it. */
export type OptionsFor<Options, Context> = unknown extends Context
  ? [options?: Options]
  : undefined extends Context
    ? [options?: Options & { context?: Context }]
    : [optionsWithContext: Options & { context: Context }]
