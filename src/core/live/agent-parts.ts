import type { Approvers } from '../../../machines/agent/approvals.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { type BudgetsOption, checkBudgetList, type SharedBudget } from '../budgets/shared-budget.js'
import type { Tokenizer } from '../context/default-tokenizer.js'
import type { ModelProvider, Sampling, ToolChoice } from '../models/provider.js'
import type { SkillInfo } from '../tools/tool-outcomes.js'
import type { Policy } from '../tools/policy.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Retriever } from '../memory/retriever.js'
import type { ShieldSet } from '../shields/shield-set.js'
import type { StructuredOutput } from '../structured/structured-output.js'
import type { PriceBook } from '../prices/price-book.js'
import type { UserGuard, GuardedResult, StopWhen } from '../user-guards/guard.js'
import type { Clock } from '../base/clock.js'
import type { Interpreter } from '../interpreter/table-transition.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { HistoryMessage } from '../sessions/input-history.js'
import { createModelFailure } from '../../../machines/agent/model-response.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { Binding, AgentRuntime } from './runtime.js'
import { indexBudgets } from '../budgets/reserve-in-all.js'

/** The parts of an agent apart from its plain configuration. */
export interface AgentParts {
  model: ModelProvider
  instructions: string | null
  tools: ToolSet
  skills?: readonly SkillInfo[]
  /** The guards of its author's own. */
  guards: readonly UserGuard[]
  /** Writes the instructions for each step. `instructions` then contains only the skill index. */
  writeInstructions?: WriteInstructions
  /** The index of its skills. */
  skillIndex?: string
  prepareStep?: PrepareStep
  /** Models that a step may use instead of `model`. */
  models?: Readonly<Record<string, ModelProvider>>
  /** Whether a run ends with the results of a batch. */
  stopWhen?: StopWhen
  sampling: Sampling
  toolChoice: ToolChoice | undefined
  extraBody: JsonObject
  prices: PriceBook
  /** Counts what requests need of `context.window`. Default: gpt-tokenizer. */
  tokenizer?: Tokenizer
  /** What answers have to be. */
  output?: StructuredOutput
  shields: ShieldSet
  /** Its policies. After a handoff, also those of the first agent. Absent: none. */
  policies?: readonly Policy[]
  /** Who may approve its calls. Absent: anyone. */
  approvers?: readonly Approvers[]
  /** Asked about each user message. */
  memory: Retriever | undefined
  config: AgentConfig
  clock: Clock
  /** What takes the machine's transitions. */
  interpreter: Interpreter
  /** Shared budgets of its runs. */
  budgets?: BudgetsOption | undefined
  /** What measures its runs. */
  telemetry: Telemetry | undefined
}

/** The input of `prepareStep`. */
export interface StepQuestion {
  /** The number of the step: 1 is the first after a user message. */
  readonly step: number
  /** The transcript; frozen. */
  readonly messages: readonly Message[]
  readonly usage: Usage
  /** The app's object passed to the run. */
  readonly context: unknown
  /** How the calls of the last response have ended, in call order; empty at the first step. */
  readonly lastResults: readonly StepResult[]
}

/** How a call has ended. */
export type StepResult = Pick<GuardedResult, 'id' | 'name' | 'arguments' | 'status' | 'content'>

/** Overrides for one request. Omitted keys keep the agent's settings. */
export interface StepSettings {
  /** A name in `models` of the agent. */
  model?: string | undefined
  /** The names of the tools that the model may call; any other call is refused. `[]`: none. */
  tools?: readonly string[] | undefined
  toolChoice?: ToolChoice | undefined
  /** In place of the agent's own. */
  instructions?: string | undefined
  /** Key by key over the agent's own. */
  sampling?: Sampling | undefined
  /** Replaces the transcript in this request; the transcript itself does not change. */
  messages?: readonly (Message | HistoryMessage)[] | undefined
}

/**
 * Configures the next request; called once per step. Its result is logged, so a resume, replay or fork
 * repeats it without a call.
 *
 * @example
 * const prepareStep: PrepareStep = ({ step }) => (step > 3 ? { model: 'small', tools: ['search'] } : {})
 * createAgent({ model, models: { small: openaiChat({ model: 'gpt-5-nano' }) }, tools, prepareStep })
 */
export type PrepareStep = (
  question: StepQuestion,
) => StepSettings | undefined | Promise<StepSettings | undefined>

/** Writes the instructions for each step. */
export type WriteInstructions = (context: unknown) => string | Promise<string>

/**
 * The parts of the agent that the conversation was handed to. Throws a plain failure if no handoff leads to
 * it any more.
 */
export function toSpeaker(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  if (speaker == null) return parts
  const mixed = parts.tools.team?.mix(speaker, parts) as AgentParts | undefined
  if (mixed !== undefined) return mixed
  const message = describeLostSpeaker(speaker)
  throw { ...createModelFailure({ kind: 'fatal', code: 'unknown_agent', message }), usage: null, jitter: 1 }
}

/** Whether the conversation was handed to an agent to which no handoff among the tools leads any more. */
export function isLostSpeaker(tools: ToolSet, speaker: string | null | undefined): speaker is string {
  return speaker != null && !tools.team?.find(speaker)
}

/** The tools of the current agent, or of the first agent if it is unknown. */
export function getSpeakerTools(tools: ToolSet, speaker: string | null | undefined): ToolSet {
  const member = speaker == null ? undefined : tools.team?.find(speaker)
  return (member as Pick<AgentParts, 'tools'> | undefined)?.tools ?? tools
}

/**
 * Tools as the machine sees them. Without a store, a sub-agent's call cannot be resumed, so `delegate` is
 * dropped.
 */
export function getTraits(
  { traits }: ToolSet,
  { store }: Pick<Binding, 'store'>,
): Record<string, ToolTraits> {
  if (store || !Object.values(traits).some(({ delegate }) => delegate)) return traits
  return Object.fromEntries(
    Object.entries(traits).map(([name, { delegate: _delegate, ...rest }]) => [name, rest]),
  )
}

/** Whether a run spends from any. */
export function hasSharedBudgets(
  { budgets }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
): boolean {
  return budgets !== undefined || binding.budgets !== undefined || binding.budgetsAbove !== undefined
}

/** The shared budgets of a run, each once: of those above it, its agent's, and its own. @throws as `indexBudgets` */
export function listRunBudgets(
  { budgets: ofAgent }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
  sessionId: string,
): readonly SharedBudget[] {
  const { budgets: ofRun, budgetsAbove = [], tags } = binding
  const own = [ofAgent, ofRun].flatMap((option) =>
    typeof option === 'function'
      ? checkBudgetList(option({ tags: tags?.() ?? {}, sessionId }), 'budgets(…)')
      : (option ?? []),
  )
  return [...indexBudgets([...budgetsAbove, ...own]).values()]
}
