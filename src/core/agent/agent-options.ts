import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import type { AgentInput } from '../../../machines/agent/context.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AnyTools, RunResult } from '../../../machines/agent/run-result.js'
import type { BudgetsOption } from '../budgets/budgets-option.js'
import type { Tokenizer } from '../context/default-tokenizer.js'
import type { Interpreter } from '../interpreter/table-transition.js'
import type { Retriever } from '../memory/retriever.js'
import type { ModelProvider, Sampling, ToolChoice } from '../models/provider.js'
import type { ForkOptions } from '../sessions/fork-edit.js'
import type { Receipt, SessionMessage } from '../sessions/inbox/session-message.js'
import type { SessionSnapshot } from '../sessions/replay-session.js'
import type { ShieldsOptions } from '../shields/shield-set.js'
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
import type { AsToolOptions } from '../sub-agents/as-tool.js'
import type { SubAgentTask } from '../sub-agents/task-schema.js'
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
 * What `createAgent` takes: the options below, and the sections of the configuration (`limits`, `budget`, `retry`,
 * `context`, `toolCalls`, `guardrails`, …).
 *
 * `Schema`: of the output; `never` for an agent that answers in free text. `Tools`: the list of them.
 *
 * @example
 * const options: AgentOptions = {
 *   model: openaiChat({ model: 'gpt-5-mini', apiKey: 'sk-…' }),
 *   instructions: 'You are a careful analyst.',
 *   tools: [add],
 *   limits: { maxSteps: 20, timeoutMs: 300_000 },
 *   toolCalls: { concurrency: 4 },
 * }
 * const analyst = createAgent(options)
 */
export interface AgentOptions<
  Schema extends InputSchema = InputSchema,
  Tools extends readonly ToolEntry[] = readonly ToolEntry[],
> extends AgentConfigInput {
  /** The model: `openaiChat(…)`, or a provider of your own. */
  model: ModelProvider
  /**
   * The system prompt: a text, or a function of the app's `context` that is asked once a step. Default: none. See docs/steps.md.
   */
  instructions?: string | WriteInstructions
  /** Models by name, which `prepareStep` can choose instead of `model`. */
  models?: Readonly<Record<string, ModelProvider>>
  /** Decides what each request is made of: its model, tools, instructions, sampling and messages. See docs/steps.md. */
  prepareStep?: PrepareStep
  /** What the model may call: tools, named groups of them, MCP servers, and other agents (`asTool`). */
  tools?: Tools
  /** Instructions that the model loads when a task needs them: what `skills()` of `statewright/skills` returns. */
  skills?: AgentSkills
  /**
   * What the answer has to be: a zod object, any other Standard Schema that can say its JSON Schema, or a plain JSON
   * Schema of an object. `result.object` is the answer, validated. See docs/structured-output.md.
   */
  output?: Schema | OutputOptions<Schema>
  /** Guards of your own, beside those that are built in: what `defineGuard` returns. */
  guards?: readonly UserGuard[]
  /**
   * Asked after each batch of calls: true ends the run in COMPLETED, and the last result that is a success is its output. See
   * docs/steps.md.
   */
  stopWhen?: StopWhen
  /** Sampling parameters of every request. */
  sampling?: Sampling
  /** Whether the model may (`auto`, the default), must or must not call tools, or which one it has to call. */
  toolChoice?: ToolChoice
  /** Merged into every request body last; `null` removes a key. */
  extraBody?: JsonObject
  /**
   * Prices of models that the built-in table does not know, or knows wrongly. `null`: the cost of a run is not computed, so
   * the table (80 kB in a page) is never loaded, and `usage.cost` is null.
   */
  prices?: PriceOverrides | null
  /** Time for tests. Default: the system's. */
  clock?: Clock
  /** Told everything that XState tells inspectors, of every run. See docs/stately.md for Stately's. */
  inspect?: Inspector
  /**
   * Where sessions are kept, so that they outlive the process: `memoryStore()`, `fileStore()`, `postgresStore()`, or
   * one of your own. Default: none; sessions live in memory, as long as the agent does.
   */
  store?: SessionStore
  /** What looks at the content that goes into a run, into a tool, out of a tool, and out of the run. */
  shields?: ShieldsOptions
  /** Asked about each user message before the model is; what it finds rides on the turn's requests, as data. */
  memory?: Retriever
  /**
   * What measures the runs: `otel()` of `statewright/otel` makes OpenTelemetry's spans and metrics of them. A list measures
   * each run with all of them.
   */
  telemetry?: Telemetry | readonly Telemetry[]
  /**
   * What takes the machine's transitions. `tables` (default) reads the chart once and walks tables; `xstate` is XState's own
   * interpreter. Both do the same, and their logs are the same; `xstate` costs more.
   */
  interpreter?: Interpreter
  /**
   * What its runs share with others, to spend from: budgets that `createBudget` of `statewright/fleet` makes, or a function that
   * gets the tags of the session and returns them. A request is made only when each of them has what it may cost. Those of a
   * sub-agent are those of the run that calls it, and its own. See docs/fleet.md.
   */
  budgets?: BudgetsOption
  /** Counts tokens for `context.window`. Default: the package gpt-tokenizer (o200k_base), loaded when needed. */
  tokenizer?: Tokenizer
}

/**
 * What a run may be given beside its input.
 *
 * @example agent.run('And in May?', { session: 'ann', signal: controller.signal, limits: { maxSteps: 5 } })
 */
export interface RunOptions {
  /** A session, or the id of one: in the agent's store, or kept in its memory. Default: a new one. */
  session?: Session | string
  /** What `store.list({ tags })` finds the session by. They replace the session's tags of the same name. Needs a `store`. */
  tags?: SessionTags
  /** Documents that go with the input, marked as data: what `loadAttachment` gave. */
  attachments?: readonly RunAttachment[]
  /** Cancels the run when it aborts. */
  signal?: AbortSignal
  /** Override the agent's limits, key by key; `null` or 0 switches one off, as in the configuration. */
  limits?: AgentConfigInput['limits']
  /**
   * The app's own object, handed to `execute`, `needsApproval`, shields and guards; never to the model or the journal.
   * Needed where the `execute` of a tool wants one.
   */
  context?: unknown
  /** Where the run's events are written ahead: `memoryJournal()`, or one of your own. Not beside a `store`. */
  journal?: Journal
  /** Shared budgets besides those of the agent. A run that is resumed has to be given them again. */
  budgets?: BudgetsOption
  /** In place of the agent's. */
  inspect?: Inspector
}

/**
 * Where a session parts, and what its run may be given.
 *
 * @example agent.branch('ann', { from: 'm3', edit: 'And in June?', limits: { maxSteps: 5 } })
 */
export interface BranchOptions extends Omit<RunOptions, 'session' | 'journal' | 'inspect'> {
  /**
   * The user's message at which the branch begins: its id in the transcript, its `clientId`, or the id of its answer. It must be
   * on the branch that the session is on.
   */
  from: string
  /** What the user says in place of that message. Default: the message is said once more, and gets another answer. */
  edit?: UserInput
  /**
   * What tells the request from others, up to 500 characters. When the session is on the branch that this key began, the run is
   * refused (`already_branched`), so that a request that comes twice makes one branch.
   */
  key?: string
}

/** What a run may be given that is brought back: what no store can keep. */
export interface ResumeOptions {
  /** Cancels the run when it aborts. */
  signal?: AbortSignal
  /** The app's own object, handed to `execute`. */
  context?: unknown
  /** As in `agent.run`. */
  budgets?: BudgetsOption
  /** In place of the agent's. */
  inspect?: Inspector
}

/**
 * `Output` is what `result.object` is, `Tools` what its tools are called and given, `Context` what they want as
 * `context`: where they want one, `run` and `resume` demand it.
 */
export interface Agent<Output = unknown, Tools = AnyTools, Context = unknown>
  extends ContextCarrier<Context> {
  /**
   * Starts a run: iterate it for its events, or await its `result`.
   *
   * @example
   * const run = agent.run('What changed last week?', { session: 'ann' })
   * const { state, output } = await run.result
   * @throws {ConfigError} `missing_api_key`, `invalid_config` for limits
   * @throws {UsageError} `invalid_input`, `invalid_option`, `session_busy` without a store; with one, `result` rejects
   */
  run(input: RunInput, ...options: OptionsFor<RunOptions, Context>): Run<Output, Tools>
  /**
   * Starts a run on a new branch of a session in the store: an earlier message is answered once more, or an edit of it is. The
   * session goes on from there. What it leaves stays in the log as another branch, and its usage stays in the totals. Calls that
   * ran have run.
   *
   * @example
   * const { output } = await agent.branch('ann', { from: 'm1' }).result // another answer
   * const other = agent.branch('ann', { from: 'm1', edit: 'And in June?' })
   * @throws {UsageError} `no_store`. `result` rejects with `invalid_option`, `unfinished_run` while the latest run has not ended,
   * `unknown_message`, `not_answered` for a message that another one follows without an answer, `other_branch`, `already_branched`,
   * `refused_by_shield` for a message that a shield refused and that has no edit, `too_many_branches` beyond 100
   */
  branch(sessionId: string, options: NonNullable<OptionsFor<BranchOptions, Context>[0]>): Run<Output, Tools>
  /**
   * The branches of a session in the store, the oldest first. A session that has never parted has one.
   *
   * @example
   * for (const { branch, seq } of await agent.listBranches('ann'))
   *   console.log(branch, (await agent.replay('ann', { to: seq })).messages.at(-1)?.content)
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`
   */
  listBranches(sessionId: string): Promise<SessionBranch[]>
  /**
   * Puts a session back on one of its branches: the next run goes on from there. Nothing happens when the session is on it.
   *
   * @example
   * await agent.selectBranch('ann', 1)
   * await agent.run('And in July?', { session: 'ann' }).result
   * @throws {UsageError} `no_store`, `unknown_branch`, `unfinished_run` while the latest run has not ended
   * @throws {StoreError} `unknown_session`, `session_busy`, …
   */
  selectBranch(sessionId: string, branch: number): Promise<void>
  /**
   * Brings back the latest run of a session in the store, as it was left by another process or another handle. One
   * that was interrupted goes on by itself: finished results are kept, an unfinished model call is made again, an
   * unfinished tool call runs again only if its tool is `readOnly` or `idempotent` (see `toolCalls.onInterrupted`).
   * One that rests is at rest: answer it, or `resume()` it. One that has ended is returned as it ended.
   *
   * @example
   * const run = await agent.resume('ann')
   * for (const call of (await run.result).pending ?? []) run.approve(call)
   * @throws {StoreError} `unknown_session`, `session_busy` (with who has it), `corrupt_log`, `newer_log`, …
   * @throws {UsageError} `no_store`, `nothing_to_resume` for a session without a run
   */
  resume(sessionId: string, ...options: OptionsFor<ResumeOptions, Context>): Promise<Run<Output, Tools>>
  /**
   * Sends a message to a session of the store, from any process that reaches the store. The process that holds the session
   * applies messages in the order in which they were told, as if its own run handle had been called. At a rest,
   * `resume` applies them. A message is durable, applied at most once, and in the log. A `cancel` of a session that no
   * process holds takes effect at once. Messages that a run has not read by its end are dropped.
   *
   * @example
   * const stop = (id: string) => agent.send(id, { type: 'cancel', why: 'The user has closed the page.' })
   * const approve = async (id: string, call: PendingCall) => {
   *   const { status } = await agent.send(id, { type: 'approve', ...call })
   *   if (status === 'waiting') await agent.resume(id) // no process held it: it is resumed here
   * }
   * @throws {UsageError} `no_store`, `no_inbox`, `invalid_input`, `run_ended`, `not_waiting` for a session that no process holds
   * and that does not wait for this, `unknown_call`, `already_answered`, `stale_answer`
   * @throws {StoreError} `unknown_session`, …
   */
  send(sessionId: string, message: SessionMessage): Promise<Receipt>
  /**
   * The events of a session of the store, from any process: from its log, as it grows, and where this process runs the
   * session also what is told live, streamed text above all. It begins with the first record, or after `after`, and ends
   * at the next rest unless `until` says otherwise. Who comes in the middle of an answer gets one chunk with all of it so
   * far (`reset`). A reader that is slow gets every event of the log, and of what is told live the first thousand that wait.
   *
   * @example
   * const show = async (id: string, lastEventId?: string) => {
   *   for await (const event of agent.watch(id, { after: lastEventId ?? 0 })) console.log(event.id, event.type)
   * }
   * @throws {UsageError} `no_store`, `invalid_option`
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …, with the first event that is asked for
   */
  watch(sessionId: string, options?: WatchOptions): AsyncIterable<WatchedEvent<Tools>>
  /**
   * A session of the store as it stood after record `to`, or as one of its branches stands; default: as it stands. Runs and writes
   * nothing.
   *
   * @example
   * const { run, messages } = await agent.replay('ann', { to: 12 })
   * const former = await agent.replay('ann', { branch: 1 })
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`, `invalid_option` for a record that there is not, `unknown_branch`
   */
  replay(sessionId: string, options?: { to?: number; branch?: number }): Promise<SessionSnapshot>
  /**
   * A new session that begins where another stood after record `seq`; default: where it stands. Resolves with its id:
   * `resume` it, or run something else in it. The other session is left as it is.
   *
   * With an `edit`, a message of the user's, a call's arguments or its result are otherwise there, checked as if they
   * came in now. What comes after them in the transcript stays: take the record at which nothing does. A run that has
   * ended is not kept then, only its conversation.
   *
   * @example
   * const run = await agent.resume(await agent.fork('ann', 12))
   * const other = await agent.fork('ann', 2, { edit: { message: 'm1', content: 'And in June?' } })
   * @throws as `replay`
   * @throws {UsageError} `unknown_message`, `unknown_call`, `already_answered` for the arguments of a call that has its
   * result, `invalid_input`, `refused_by_shield`
   */
  fork(sessionId: string, seq?: number, options?: ForkOptions): Promise<string>
  /**
   * Reads a session of the store, to use it elsewhere: for `createInput()`, or to keep it as `session.toJSON()`. Calls that wait for
   * an answer are closed in the copy; the store keeps the session as it is.
   *
   * @example const input = agent.createInput('And now?', { session: await agent.readSession('ann') })
   * @throws {StoreError} `unknown_session`, `corrupt_log`, …
   * @throws {UsageError} `no_store`
   */
  readSession(sessionId: string): Promise<Session>
  /**
   * Gives a session of the store a title for lists: `summary.title` of `store.list()`, the command line and the studio show it. Also
   * while a run works on the session. White space counts as one blank. Null: the default again, which is the session's name, or the
   * beginning of its first message.
   *
   * @example
   * await agent.rename('ann', 'The trip to Lisbon')
   * @throws {UsageError} `no_store`, `no_titles` for a store that keeps none, `invalid_option` for what is no text of 1 to 200
   * characters
   * @throws {StoreError} `unknown_session`, …
   */
  rename(sessionId: string, title: string | null): Promise<void>
  /**
   * Forgets a session that runs have named by its id: out of the store or, without one, out of the agent's memory, where
   * it would stay for as long as the agent. The sessions of its sub-agents, at every depth, and all that is left in an inbox
   * go with it. False when there was none.
   *
   * @example await agent.deleteSession('ann') // while it works: agent.send('ann', { type: 'cancel' }) first
   *
   * @throws {StoreError | UsageError} `session_busy` while a run has it, or a sub-agent's session; the session is still there
   */
  deleteSession(sessionId: string): Promise<boolean>
  /**
   * Deletes all sessions of an owner out of the store, as `deleteSession` does, in batches. It cancels runs at work first. Returns how
   * many sessions were deleted, those of sub-agents included. When it fails, the same call deletes the rest.
   *
   * @example const erase = (user: string) => agent.deleteSessions({ tags: { user } }) // or { prefix: user }
   *
   * @throws {UsageError} `no_store`, `invalid_option` for an owner that is missing
   * @throws {StoreError} `session_busy` for a session that is held for another half minute, …
   */
  deleteSessions(owner: SessionOwner): Promise<number>
  /**
   * The XState machine with this agent's actors provided: for `createActor`, `useMachine`, or `invoke` in a machine of
   * your own. Its input is a text, messages, or the result of `createInput()`; where tools want a `context`, only the latter.
   *
   * @example createActor(agent.machine, { input: 'What changed last week?' }).start()
   */
  readonly machine: AgentMachine<Context>
  /**
   * Input for one actor of `machine`, with a run's options. The session is read from memory, not from a store: what is
   * there comes with `readSession`. Only `run()` writes back to it.
   *
   * @example
   * const actor = createActor(agent.machine, { input: agent.createInput('Go.', { limits: { maxSteps: 5 } }) })
   * @throws {UsageError} `invalid_option` for the id of a session where there is a store
   */
  createInput(
    input: RunInput,
    ...options: OptionsFor<Omit<RunOptions, 'signal' | 'inspect' | 'tags'>, Context>
  ): AgentInput
  /**
   * The output of an actor of `machine`, with its `object`, or its `outputProblem`. For programs that run the machine without
   * `run()`; without an output schema, the result as it is.
   *
   * @example
   * const actor = createActor(agent.machine, { input: 'Go.' }).start()
   * const { object } = await agent.withObject(await toPromise(actor))
   */
  withObject(result: RunResult): Promise<RunResult<Output, Tools>>
  /** The whole configuration, defaults filled in; frozen. */
  readonly config: AgentConfig
  /**
   * This agent as a tool of another: a call runs it, as a child of the run that calls, on that run's budget. Throws a
   * ConfigError for what cannot be a tool.
   *
   * @example
   * const lead = createAgent({ model, tools: [researcher.asTool({ name: 'research', description: '…', maxSteps: 20 })] })
   */
  asTool<Schema extends InputSchema = StandardJsonSchema<SubAgentTask>, const Name extends string = string>(
    options: AsToolOptions<Schema, Name>,
  ): Tool<InputOf<Schema>, Context, Name, ArgumentsOf<Schema>>
}

/** A document that goes with what the user says; `loadAttachment` of `statewright/memory` reads one. */
export interface RunAttachment {
  /** Where it comes from, for people and the model: a file name, a URL. */
  name: string
  /** All of its text. */
  text: string
}
