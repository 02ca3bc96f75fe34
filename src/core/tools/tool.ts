import type { AnyActorRef } from 'xstate'
import type { BudgetRemaining } from '../../../guards/budget.js'
import type { AgentEvent } from '../../../machines/agent/announcements.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Message, ToolCall } from '../../../machines/agent/messages.js'
import type { AgentState, RunResult } from '../../../machines/agent/run-result.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { SharedBudget } from '../budgets/shared-budget.js'
import type { PriceBook } from '../prices/price-book.js'
import type { TelemetryParent } from '../telemetry/telemetry.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { Validate } from './input-schema.js'
import type { ToolGroup } from './tool-source.js'
import type { ToolEntry } from './tool-set.js'

/**
 * What `execute` is told besides its input. `Context` is the app's own object, given to the run.
 *
 * @example execute: ({ id }, { context, signal }: ToolExecution<{ db: Db }>) => context.db.find(id, { signal })
 */
export interface ToolExecution<Context = unknown> {
  /** Aborts when the run is cancelled or out of time, or when the call exceeds its `timeoutMs`. */
  readonly signal: AbortSignal
  /** The model's own id of this call. */
  readonly callId: string
  /** Of the run that makes it. */
  readonly runId: string
  /** Of the session that the run belongs to. */
  readonly sessionId: string
  /** The same when this very call is executed again after a crash, and unique otherwise: hand it on to services. */
  readonly idempotencyKey: string
  /** `run(input, { context })`. Never seen by the model or the log. */
  readonly context: Context
  /** Emits `tool_progress`. What is not JSON is described. Ignored once the call has ended. */
  readonly progress: (value: unknown) => void
  /** What this call has kept before its process died. Undefined: nothing, or the tool has no `keepsHandle`. */
  readonly handle?: Json
  /**
   * Writes what the call goes on from in another process into the log, as JSON: the id of a job, for example. Settles once it
   * is there; the last handle counts. Only for tools with `keepsHandle: true`.
   */
  readonly keepHandle?: (handle: unknown) => Promise<void>
}

/**
 * A tool, as `defineTool` makes it. `Input` is what `execute` is given, `Arguments` what the model gives for it: they
 * differ where the schema has defaults or transforms.
 */
export interface Tool<Input = unknown, Context = unknown, Name extends string = string, Arguments = Input>
  extends Omit<ToolTraits, 'delegate' | 'deferred' | 'loads' | 'skill' | 'handoff'> {
  /** What the model calls it by. */
  readonly name: Name
  /** What it does and when to use it, for the model. */
  readonly description: string
  /** JSON Schema of the input, as the model sees it. */
  readonly parameters: JsonObject
  /** Milliseconds; 0 is no limit. Undefined: `toolCalls.timeoutMs` of the configuration. */
  readonly timeoutMs: number | undefined
  /** Executed by the caller of the run, who answers with `run.addToolOutput(callId, value)`. */
  readonly client: boolean
  /** Whether a person has to approve each call. */
  readonly needsApproval: boolean | ApprovalPredicate<Input>
  /** Checks what the model gives. */
  readonly validate: Validate
  /** Absent on client tools and sub-agents. */
  readonly execute: Execute<Input, Context> | undefined
  /** The model is told of it in full only once it is loaded: see `toolSearch`. */
  readonly defer?: true
  /** Makes it the search for deferred tools: what `toolSearch()` returns. */
  readonly search?: ToolSearch
  /** Makes it a sub-agent: what `agent.asTool()` returns. */
  readonly delegate?: Delegate
  /** It belongs to the skills of an agent. */
  readonly skill?: true
  /** Makes it a handoff: what `handoff()` returns. */
  readonly handoff?: HandoffLink
  /** For the type checker only. */
  readonly '~arguments'?: Arguments
}

type Execute<Input, Context> = Method<[input: Input, execution: ToolExecution<Context>], unknown>

/**
 * Whether a person has to approve this call. Whatever it throws counts as yes. `context` is the app's own object:
 * annotate it, `(input, { context }: { context: App }) => …`.
 */
export type ApprovalPredicate<Input> = Method<
  [input: Input, options: { context: unknown }],
  boolean | Promise<boolean>
>

/** Compared as methods are (bivariantly), so that tools with different inputs fit one list of `Tool`. */
type Method<Parameters extends unknown[], Result> = { method(...parameters: Parameters): Result }['method']

/** What knows tools by their names. */
export interface ToolsByName {
  get(name: string): Tool | undefined
}

/** What makes a tool the search for deferred tools. */
export interface ToolSearch {
  /** Where the schemas of loaded tools go: into the request's tools, or into the search's results. */
  readonly loading: 'append' | 'dispatch'
  /** The provider searches in its place. */
  readonly hosted: boolean
  /** With `dispatch`: the tool that calls the loaded ones. */
  readonly dispatcher: Tool | undefined
  /** The list of deferred tools that goes with the instructions: the same for the same tools. */
  readonly writeIndex: (deferred: readonly Tool[]) => string
  /** Loads what it needs. Rejects with a StatewrightError where a package is missing. */
  readonly ready: () => Promise<void>
  /** The result of a search; it loads what it finds. */
  readonly find: (input: unknown, scope: ToolSearchScope) => Promise<string>
  /** The call that a call of the dispatcher stands for; the call itself where it stands for none. */
  readonly unwrap: (call: ToolCall) => ToolCall
  /** A transcript as the model wrote it. The same objects for the same messages. */
  readonly wrap: (messages: readonly Message[]) => readonly Message[]
}

/** What a search for tools works with. */
export interface ToolSearchScope {
  readonly deferred: readonly Tool[]
  /** Characters of a result. */
  readonly maxChars: number
  readonly load: (names: readonly string[]) => void
}

/** What makes a tool a handoff. Agents are objects here: this room does not know their parts. */
export interface HandoffLink {
  /** What the other agent is called in the session. */
  readonly to: string
  /** The other agent is named by a function, because it may be made later. */
  readonly isLater: boolean
  /** @throws {ConfigError} `invalid_handoff` for a function that returns no agent */
  readonly getParts: () => object
  /** The agents that these tools lead to, by one handoff or by several. */
  readonly gather: (tools: readonly Tool[]) => Team
}

/** The agents that a session can be handed to. Its methods throw a ConfigError where two agents have one name. */
export interface Team {
  find(name: string): object | undefined
  /** The parts of a session's first agent, with what the agent of this name has as its own. The same object for the same agents. */
  mix(name: string, first: object): object | undefined
  /** Their names, with their parts. */
  list(): readonly (readonly [string, object])[]
  /**
   * Throws a ConfigError for agents that cannot go on with a session of the first agent. `isBegun`: agents that are named by functions
   * are there.
   */
  check(first: object, options: { isBegun: boolean }): void
}

/** What makes a tool a sub-agent. */
export interface Delegate {
  /** The deepest level at which it may run: 1 is right below a run that people started. */
  readonly maxDepth: number
  /** The tools of the sub-agent itself. */
  readonly tools: ToolsByName
  /** The sub-agent's user message. Throws when the input makes none. */
  readonly messageFor: (input: unknown) => string
  /** Begins the run of a call, or goes on with it. Null: it was under way before, and nothing is left of it. */
  readonly open: (errand: DelegateRequest) => Promise<DelegateRun | null>
}

/** What a call needs of the run that carries it out. */
export interface DelegateRun {
  readonly state: AgentState
  /** Its end, or its next rest. Rejects when it is refused. */
  readonly result: Promise<RunResult>
  approve(callId: string, args: unknown, options: { fingerprint: string }): void
  reject(callId: string, why: string, options: { fingerprint: string }): void
  addToolOutput(callId: string, value: unknown): void
  pause(): void
  resume(): void
  cancel(why: string): void
}

/** One call of a sub-agent, and what its run gives it. */
export interface DelegateRequest {
  /** The call's tool. */
  name: string
  message: string
  /** Where its log is kept: the same when the call is carried out again after a crash. */
  sessionId: string
  /** The session of the run. */
  parentSessionId: string
  /** The call has been under way before. */
  isBegun: boolean
  /** The actor that it is a child of, and its id there. */
  parent: AnyActorRef
  actorId: string
  /** The store of the run. Absent: the sub-agent lives in memory. */
  store: SessionStore | undefined
  /** What the run has left. */
  left: BudgetRemaining
  countCached: boolean
  /** In a fork with `askFirst`: calls of the sub-agent that are not read-only ask for approval, too. */
  askFirst: true | undefined
  /** What the run's prices are. */
  prices: PriceBook
  /** The shared budgets that the run spends from; undefined: none. */
  budgets: readonly SharedBudget[] | undefined
  depth: number
  maxDepth: number
  /** The app's own object. */
  context: unknown
  /** Where the run is measured, and by what. */
  above: TelemetryParent | undefined
  /** Whether the sub-agent is not needed any more. */
  isUnwanted: () => boolean
  /** Receives each state of its run at once. */
  watch: (context: AgentContext) => void
  /** Receives its events, from the first on. */
  onEvent: (event: AgentEvent) => void
}

/** The tools that an entry of `tools` brings; what a source has to offer is not known before it is asked. */
type ToolsIn<Entry> = Entry extends { readonly group: ToolGroup<infer _Args, infer Member> }
  ? Member
  : Entry extends Tool
    ? Entry
    : Tool

/**
 * What the tools of an agent are called, and what the model gives each: `{ add: { a: number; b: number } }`. Where one
 * of them is not known by name, any name may come.
 */
export type ToolsOf<Entries extends readonly ToolEntry[]> =
  string extends NameOf<ToolsIn<Entries[number]>>
    ? Record<string, unknown>
    : { [Each in ToolsIn<Entries[number]> as NameOf<Each>]: ArgumentsOf<Each> }

type NameOf<Each> = Each extends { name: infer Name extends string } ? Name : string

type ArgumentsOf<Each> =
  Each extends Tool<infer _Input, infer _Context, infer _Name, infer Arguments> ? Arguments : unknown

/**
 * What `execute` of all these tools wants as `context`, together; unknown when none wants any.
 *
 * @example
 * const find = defineTool({
 *   name: 'find',
 *   description: 'Finds.',
 *   input: z.object({}),
 *   execute: (_input, { context }: ToolExecution<{ db: string }>) => context.db,
 * })
 * const context: ContextOf<[typeof find]> = { db: 'people' } // what `run` demands
 */
export type ContextOf<Entries extends readonly ToolEntry[]> =
  Wish<ToolsIn<Entries[number]>> extends (context: infer Context) => void ? Context : unknown

/** As a parameter, so that the wishes of several tools are all to be met. */
type Wish<Each> =
  Each extends Tool<infer _Input, infer Context, infer _Name, infer _Arguments>
    ? (context: Context) => void
    : never

/** Carries the `context` that tools want, from an agent to what runs it. */
export interface ContextCarrier<Context> {
  /** For the type checker only. */
  readonly '~context'?: () => Context
}

/** Options with the `context` that tools want; any, or none, where no tool wants one. */
export type WithContext<Options, Context> = unknown extends Context
  ? Options & { context?: unknown }
  : undefined extends Context
    ? Options & { context?: Context }
    : Options & { context: Context }

/** Whether a run may go without a `context`. */
export type IsContextFree<Context> = undefined extends Context ? true : false

/** The options of a run: with `context` where tools want one, which the compiler's message names, and optional where none does. */
export type OptionsFor<Options, Context> = unknown extends Context
  ? [options?: Options]
  : undefined extends Context
    ? [options?: Options & { context?: Context }]
    : [optionsWithContext: Options & { context: Context }]
