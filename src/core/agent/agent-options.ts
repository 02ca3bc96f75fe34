import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AnyTools, RunResult } from '../../../machines/agent/run-result.js'
import type { BudgetsOption } from '../budgets/shared-budget.js'
import type { Tokenizer } from '../context/default-tokenizer.js'
import type { Interpreter } from '../interpreter/table-transition.js'
import type { Retriever } from '../memory/retriever.js'
import type { ModelProvider, Sampling, ToolChoice } from '../models/provider.js'
import type { ForkOptions } from '../run/edit-fork.js'
import type { Receipt, SessionMessage } from '../sessions/inbox/session-message.js'
import type { SessionSnapshot } from '../sessions/replay-session.js'
import type { Approvers, Expiry } from '../../../machines/agent/approvals.js'
import type { Policy } from '../tools/policy.js'
import type { ShieldsOptions } from '../shields/define-shield.js'
import type { SentBy } from '../sessions/principal.js'
import type { SessionTags } from '../sessions/store/session-tags.js'
import type { SessionStore } from '../sessions/store/store.js'
import type { OutputOptions } from '../structured/structured-output.js'
import type { ArgumentsOf, InputOf, InputSchema, StandardJsonSchema } from '../tools/input-schema.js'
import type { AgentSkills } from '../tools/tool-outcomes.js'
import type { Tool, ContextCarrier, OptionsFor } from '../tools/tool.js'
import type { ToolEntry } from '../tools/tool-set.js'
import type { PriceOverrides } from '../prices/price-book.js'
import type { PrepareStep, WriteInstructions } from '../live/agent-parts.js'
import type { UserGuard, StopWhen } from '../user-guards/guard.js'
import type { Clock } from '../base/clock.js'
import type { AsToolOptions, SubAgentTask } from '../sub-agents/as-tool.js'
import type { Inspector } from '../run/safe-listeners.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { RunInput } from '../sessions/input-history.js'
import type { SessionBranch } from '../sessions/select-branch.js'
import type { UserInput } from '../sessions/user-input.js'
import type { Journal } from '../sessions/journal.js'
import type { AgentMachine } from '../live/journaled-machine.js'
import type { SessionOwner } from '../run/delete-sessions.js'
import type { Run } from '../run/run.js'
import type { WatchedEvent, WatchOptions } from '../run/watch-session.js'
import type { Session } from '../sessions/session.js'

/**
 * The options of `createAgent`, together with the sections of the configuration (`limits`, `budget`, `retry`,
 * `context`, `toolCalls`, `guardrails`, …). `Schema` is the output schema, or `never` for free text. `Tools` is the
 * list of tools.
 */
export interface AgentOptions<
  Schema extends InputSchema = InputSchema,
  Tools extends readonly ToolEntry[] = readonly ToolEntry[],
> extends AgentConfigInput {
  /** The model, for example `openaiChat(…)` or a custom provider. */
  model: ModelProvider
  /**
   * The system prompt, or a function of the app's `context` called once per step. Defaults to none. See docs/steps.md.
   */
  instructions?: string | WriteInstructions
  /** Models by name. `prepareStep` can choose one of them instead of `model`. */
  models?: Readonly<Record<string, ModelProvider>>
  /** Configures each request with its model, tools, instructions, sampling and messages. See docs/steps.md. */
  prepareStep?: PrepareStep
  /** Tools, named groups of tools, MCP servers, and other agents (`asTool`). */
  tools?: Tools
  /** Instructions that the model loads on demand, created with `skills()` from `statewright/skills`. */
  skills?: AgentSkills
  /**
   * The schema of the answer, as a zod object, another Standard Schema with JSON Schema support, or a plain
   * JSON Schema of an object. `result.object` is the validated answer. See docs/structured-output.md.
   */
  output?: Schema | OutputOptions<Schema>
  /** Decides which calls run, ask for approval, or are denied. The strictest applies. See docs/approvals.md. */
  policy?: Policy | readonly Policy[]
  /** Who may approve calls, also of sub-agents, and until when. Defaults to anyone, always. See docs/approvals.md. */
  approvals?: { approvers?: Approvers } & Expiry
  /** Custom guards from `defineGuard`, in addition to the built-in guards. */
  guards?: readonly UserGuard[]
  /**
   * Called after each batch of calls. If the function returns true, the run ends in COMPLETED with the last successful
   * result as its output. See docs/steps.md.
   */
  stopWhen?: StopWhen
  /** Sampling parameters of every request. */
  sampling?: Sampling
  /**
   * Whether the model may (`auto`, the default), must or must not call tools. `{ name }` requires a call to that tool.
   */
  toolChoice?: ToolChoice
  /** Fields that are merged into every request body last. `null` removes a key. */
  extraBody?: JsonObject
  /**
   * Prices that extend or override the built-in table. `null` disables cost computation: the table (80 kB in a page) is
   * never loaded, and `usage.cost` is null.
   */
  prices?: PriceOverrides | null
  /** A clock for tests. Defaults to the system clock. */
  clock?: Clock
  /** Receives XState's inspection events from every run. See docs/stately.md for Stately's inspector. */
  inspect?: Inspector
  /**
   * A persistent session store, such as `memoryStore()`, `fileStore()`, `postgresStore()` or a custom one. Defaults
   * to none, which keeps sessions in memory as long as the agent exists.
   */
  store?: SessionStore
  /** Shields that check the input and output of the run and of its tools. */
  shields?: ShieldsOptions
  /** A retriever that is queried with each user message. The results are added to the requests of the turn as data. */
  memory?: Retriever
  /**
   * Telemetry for runs. `otel()` from `statewright/otel` records OpenTelemetry spans and metrics. Each item of a list
   * receives all runs.
   */
  telemetry?: Telemetry | readonly Telemetry[]
  /**
   * The interpreter of the machine. `tables` (default) compiles the chart to tables once. `xstate` is XState's own
   * interpreter. Both behave identically and write the same logs, but `xstate` uses more CPU.
   */
  interpreter?: Interpreter
  /**
   * Shared budgets created with `createBudget` from `statewright/fleet`, or a function that returns them for the session's tags.
   * A request is sent only if every budget covers its cost. Sub-agents also use the budgets of their parent. See
   * docs/fleet.md.
   */
  budgets?: BudgetsOption
  /** Counts tokens for `context.window`. Defaults to gpt-tokenizer (o200k_base), which is loaded on demand. */
  tokenizer?: Tokenizer
}

/**
 * The options of one run.
 * @example agent.run('And in May?', { session: 'ann', signal: controller.signal, limits: { maxSteps: 5 } })
 */
export interface RunOptions extends SentBy {
  /** A session, or the id of a session in the agent's store or memory. Defaults to a new session. */
  session?: Session | string
  /**
   * Tags for finding the session with `store.list({ tags })`. They replace existing tags with the same name. Requires
   * a `store`.
   */
  tags?: SessionTags
  /** Documents from `loadAttachment`, sent with the input and marked as data. */
  attachments?: readonly RunAttachment[]
  /** A signal that cancels the run when it is aborted. */
  signal?: AbortSignal
  /** Overrides the agent's limits, key by key. `null` or 0 disables a limit, as in the configuration. */
  limits?: AgentConfigInput['limits']
  /**
   * The app's object for `execute`, `needsApproval`, shields and guards. The model and the journal never receive it.
   * Required if a tool's `execute` declares a context.
   */
  context?: unknown
  /** A write-ahead log of the run's events, such as `memoryJournal()`. Cannot be combined with a `store`. */
  journal?: Journal
  /** Additional shared budgets. A resume must pass them again. */
  budgets?: BudgetsOption
  /** Replaces the agent's inspector. */
  inspect?: Inspector
}

/**
 * The branch point of a session, and the options of the new run.
 * @example agent.branch('ann', { from: 'm3', edit: 'And in June?', limits: { maxSteps: 5 } })
 */
export interface BranchOptions extends Omit<RunOptions, 'session' | 'journal' | 'inspect'> {
  /**
   * The user message where the branch starts, by its transcript id, its `clientId` or the id of its answer. The message
   * must be on the current branch.
   */
  from: string
  /** Replaces the user message. Without `edit`, the model answers the same message again. */
  edit?: UserInput
  /**
   * An idempotency key of up to 500 characters. If the session is already on the branch with this key, the run is
   * refused (`already_branched`), so repeated requests create only one branch.
   */
  key?: string
}

/** The options of a resume. They are not stored. */
export interface ResumeOptions {
  /** A signal that cancels the run when it is aborted. */
  signal?: AbortSignal
  /** The app's object for `execute`. */
  context?: unknown
  /** Additional shared budgets, as in `agent.run`. */
  budgets?: BudgetsOption
  /** Replaces the agent's inspector. */
  inspect?: Inspector
}

/**
 * `Output` is the type of `result.object`, `Tools` are the names and inputs of the tools, and `Context` is the
 * `context` that the tools require. If a context is required, it is a required option of `run` and `resume`.
 */
export interface Agent<Output = unknown, Tools = AnyTools, Context = unknown>
  extends ContextCarrier<Context> {
  /**
   * Starts a run. Iterate over it for its events, or await its `result`.
   * @example const { state, output } = await agent.run('What changed last week?', { session: 'ann' }).result
   * @throws {ConfigError} `missing_api_key`, `invalid_config` for limits
   * @throws {UsageError} `invalid_input`, `invalid_option`, `session_busy` without a store. With a store, `result`
   * rejects instead
   */
  run(input: RunInput, ...options: OptionsFor<RunOptions, Context>): Run<Output, Tools>
  /**
   * Starts a run on a new branch of a stored session. The run answers an earlier message again, optionally edited, and
   * the session continues from there. The previous messages stay in the log as another branch, and their usage stays in
   * the totals. Tool calls are not undone.
   * @example const { output } = await agent.branch('ann', { from: 'm1', edit: 'And in June?' }).result
   * @throws {UsageError} `no_store`. `result` rejects with `invalid_option`, `unfinished_run` while the latest run has
   * not ended, `unknown_message`, `not_answered` for an unanswered message before another message, `other_branch`,
   * `already_branched`, `refused_by_shield` for a message that a shield refused and that has no edit,
   * `too_many_branches` beyond 100
   */
  branch(sessionId: string, options: NonNullable<OptionsFor<BranchOptions, Context>[0]>): Run<Output, Tools>
  /**
   * Lists the branches of a stored session, oldest first. A session without branch points has one branch.
   * @example for (const { branch, seq } of await agent.listBranches('ann')) console.log(branch, seq)
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`
   */
  listBranches(sessionId: string): Promise<SessionBranch[]>
  /**
   * Selects the branch that the session's next run continues. Has no effect if the branch is already selected.
   * @example await agent.selectBranch('ann', 1)
   * @throws {UsageError} `no_store`, `unknown_branch`, `unfinished_run` while the latest run has not ended
   * @throws {StoreError} `unknown_session`, `session_busy`, …
   */
  selectBranch(sessionId: string, branch: number): Promise<void>
  /**
   * Resumes the latest run of a stored session. An interrupted run continues by itself with its finished results. An
   * unfinished model request is repeated. An unfinished tool call is repeated only if its tool is `readOnly` or
   * `idempotent` (see `toolCalls.onInterrupted`). A settled run waits for an answer or `resume()`. A run that has
   * ended is returned unchanged.
   * @example const { state } = await (await agent.resume('ann')).result
   * @throws {StoreError} `unknown_session`, `session_busy` (with the lease owner), `corrupt_log`, `newer_log`, …
   * @throws {UsageError} `no_store`, `nothing_to_resume` for a session without a run
   */
  resume(sessionId: string, ...options: OptionsFor<ResumeOptions, Context>): Promise<Run<Output, Tools>>
  /**
   * Sends a message to a stored session from any process with access to the store. The lease owner applies messages in
   * order, like calls on its run handle. If the session rests, `resume` applies them. A message is durable, logged, and
   * applied at most once. A `cancel` takes effect immediately if the session has no lease owner. Messages that are not
   * read before the run ends are dropped.
   * @example
   * const approve = async (id: string, call: PendingCall) => {
   *   const { status } = await agent.send(id, { type: 'approve', ...call })
   *   if (status === 'waiting') await agent.resume(id) // no process held it: it is resumed here
   * }
   * @throws {UsageError} `no_store`, `no_inbox`, `invalid_input`, `run_ended`, `not_waiting` for a session without a
   * lease owner that does not wait for this message, `unknown_call`, `already_answered`, `stale_answer`
   * @throws {StoreError} `unknown_session`, …
   */
  send(sessionId: string, message: SessionMessage): Promise<Receipt>
  /**
   * Iterates over the events of a stored session, from any process. The events are read from the session's log as it
   * grows, or received live (with streamed text) if this process runs the session. Starts with the first record or
   * after `after`, and ends when the session settles unless `until` is set. A reader that joins during an answer gets
   * one chunk with the text so far (`reset`). A slow reader gets all logged events and up to a thousand live ones.
   * @example
   * const show = async (id: string, lastEventId?: string) => {
   *   for await (const event of agent.watch(id, { after: lastEventId ?? 0 })) console.log(event.id, event.type)
   * }
   * @throws {UsageError} `no_store`, `invalid_option`
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …, with the first event that is asked for
   */
  watch(sessionId: string, options?: WatchOptions): AsyncIterable<WatchedEvent<Tools>>
  /**
   * The state of a stored session after record `to`, or on a branch. Defaults to the current state. Neither starts a
   * run nor writes to the store.
   * @example const { run, messages } = await agent.replay('ann', { to: 12 })
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`, `invalid_option` for an unknown record, `unknown_branch`
   */
  replay(sessionId: string, options?: { to?: number; branch?: number }): Promise<SessionSnapshot>
  /**
   * Creates a copy of a session up to record `seq`, by default up to the last record. Resolves with the new session's
   * id, for `resume` or `run`. The original session does not change. An `edit` changes a user message, or a call's
   * arguments or result, and is validated like new input. Later messages in the transcript are kept, so choose a record
   * before them. If the run has ended, an edit drops the run and keeps only its conversation.
   * @example const id = await agent.fork('ann', 2, { edit: { message: 'm1', content: 'And in June?' } })
   * @throws as `replay`
   * @throws {UsageError} `unknown_message`, `unknown_call`, `already_answered` for the arguments of a call that has its
   * result, `invalid_input`, `refused_by_shield`
   */
  fork(sessionId: string, seq?: number, options?: ForkOptions): Promise<string>
  /**
   * Reads a copy of a stored session for use elsewhere, with `createInput()` or `session.toJSON()`. Pending calls are
   * closed in the copy.
   * @example const input = agent.createInput('And now?', { session: await agent.readSession('ann') })
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`
   */
  readSession(sessionId: string): Promise<Session>
  /**
   * Sets the title of a stored session, which is shown in `summary.title` of `store.list()`, the command line and the
   * studio. Can be called during a run. Whitespace is collapsed. Null restores the default, which is the session's name
   * or the start of its first message.
   * @example await agent.rename('ann', 'The trip to Lisbon')
   * @throws {UsageError} `no_store`, `no_titles` for a store without titles, `invalid_option` for a title that is not a
   * string of 1 to 200 characters
   * @throws {StoreError} `unknown_session`, …
   */
  rename(sessionId: string, title: string | null): Promise<void>
  /**
   * Deletes a session from the store. Without a store, deletes it from memory, where it would otherwise stay as long
   * as the agent exists. Also deletes the sessions and inboxes of its sub-agents at every depth. Returns false if the
   * session does not exist.
   * @example await agent.deleteSession('ann') // while it works: agent.send('ann', { type: 'cancel' }) first
   * @throws {StoreError | UsageError} `session_busy` while a run holds the session or a sub-agent's session. Nothing is
   * deleted
   */
  deleteSession(sessionId: string): Promise<boolean>
  /**
   * Deletes all sessions of an owner from the store in batches, like `deleteSession`. Cancels active runs
   * first. Returns the number of deleted sessions, sub-agents included. After a failure, call it again.
   * @example const erase = (user: string) => agent.deleteSessions({ tags: { user } }) // or { prefix: user }
   * @throws {UsageError} `no_store`, `invalid_option` for a missing owner
   * @throws {StoreError} `session_busy` for a session that is held for another half minute, …
   */
  deleteSessions(owner: SessionOwner): Promise<number>
  /**
   * The XState machine with this agent's actors, for `createActor`, `useMachine` or `invoke`. Its input is a text,
   * messages, or the result of `createInput()`. If tools require a `context`, use `createInput()`.
   * @example createActor(agent.machine, { input: 'What changed last week?' }).start()
   */
  readonly machine: AgentMachine<Context>
  /**
   * Creates the input of one actor of `machine` with the options of a run. The session is read from memory. For stored
   * sessions, use `readSession`. Only `run()` updates the session.
   * @example const input = agent.createInput('Go.', { limits: { maxSteps: 5 } })
   * @throws {UsageError} `invalid_option` for a session id if the agent has a store
   */
  createInput(
    input: RunInput,
    ...options: OptionsFor<Omit<RunOptions, 'signal' | 'inspect' | 'tags'>, Context>
  ): AgentInput
  /**
   * Adds `object` or `outputProblem` to the output of an actor of `machine`, for programs that do not use `run()`.
   * Without an output schema, the result is returned unchanged.
   * @example const { object } = await agent.withObject(result)
   */
  withObject(result: RunResult): Promise<RunResult<Output, Tools>>
  /**
   * The object in an actor's output, for `onDone` in your machine, which cannot wait. Undefined without an output
   * schema, and if the run has not ended with a valid answer.
   * @example const ticket = agent.objectOf(result)
   * @throws {UsageError} `async_schema` if the output schema validates asynchronously; use `withObject`
   */
  objectOf(result: RunResult): Output | undefined
  /** The complete configuration with defaults, frozen. */
  readonly config: AgentConfig
  /**
   * Wraps this agent as a tool. A call runs the agent as a child of the calling run, within that run's budget. Throws a
   * ConfigError for invalid options.
   * @example createAgent({ model, tools: [researcher.asTool({ name: 'research', description: '…', maxSteps: 20 })] })
   */
  asTool<Schema extends InputSchema = StandardJsonSchema<SubAgentTask>, const Name extends string = string>(
    options: AsToolOptions<Schema, Name>,
  ): Tool<InputOf<Schema>, Context, Name, ArgumentsOf<Schema>>
}

/** A document sent with user input, read by `loadAttachment` from `statewright/memory`. */
export interface RunAttachment {
  /** The source for people and the model, such as a file name or URL. */
  name: string
  /** The complete text. */
  text: string
}
