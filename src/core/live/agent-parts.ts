import type { Approvers, Expiry } from '../../../machines/agent/approvals.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import { type BudgetsOption, checkBudgetList, type SharedBudget } from '../budgets/shared-budget.js'
import type { Tokenizer } from '../context/default-tokenizer.js'
import type { ModelProvider, Sampling, ToolChoice } from '../models/provider.js'
import type { SkillInfo } from '../tools/tool-outcomes.js'
import type { Policy } from '../tools/policy.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Retriever } from '../memory/retriever.js'
import type { ShieldSet } from '../shields/define-shield.js'
import type { StructuredOutput } from '../structured/structured-output.js'
import type { PriceBook } from '../prices/price-book.js'
import type { UserGuard, GuardedResult, StopWhen } from '../user-guards/guard.js'
import type { Clock } from '../base/clock.js'
import type { Interpreter } from '../interpreter/table-transition.js'
import type { Telemetry } from '../telemetry/telemetry.js'
import type { Message } from '../../../machines/agent/messages.js'
import type { Usage } from '../../../machines/agent/usage.js'
import type { HistoryMessage } from '../sessions/input-history.js'
import { createActorError } from '../base/errors.js'
import { describeLostSpeaker } from '../sessions/session-errors.js'
import type { ToolTraits } from '../../../machines/agent/batch-calls.js'
import type { Binding, AgentRuntime, EffectScope } from './runtime.js'
import { indexBudgets } from '../budgets/reserve-in-all.js'

/** The parts of an agent that are not plain configuration. */
export interface AgentParts {
  model: ModelProvider
  instructions: string | null
  tools: ToolSet
  skills?: readonly SkillInfo[]
  guards: readonly UserGuard[]
  /** Then `instructions` contains only the skill index. */
  writeInstructions?: WriteInstructions
  skillIndex?: string
  prepareStep?: PrepareStep
  models?: Readonly<Record<string, ModelProvider>>
  stopWhen?: StopWhen
  sampling: Sampling
  toolChoice: ToolChoice | undefined
  extraBody: JsonObject
  prices: PriceBook
  /** For `context.window`. Defaults to gpt-tokenizer. */
  tokenizer?: Tokenizer
  output?: StructuredOutput
  shields: ShieldSet
  /** The agent's policies. After a handoff, also the policies of the first agent. Absent if there are none. */
  policies?: readonly Policy[]
  /** Absent if anyone may approve the agent's calls. */
  approvers?: readonly Approvers[]
  /** The time limit for the agent's questions. Absent if there is no limit. */
  expiry?: Expiry
  memory: Retriever | undefined
  config: AgentConfig
  clock: Clock
  interpreter: Interpreter
  budgets?: BudgetsOption | undefined
  telemetry: Telemetry | undefined
}

/** The scope of a model request. `parts` belong to the agent that has the conversation. */
export type AskScope = { parts: AgentParts } & Omit<EffectScope, 'self'>

/** The input of `prepareStep`. */
export interface StepQuestion {
  /** The step number. The first step after a user message is 1. */
  readonly step: number
  /** The frozen transcript. */
  readonly messages: readonly Message[]
  readonly usage: Usage
  /** The app's object passed to the run. */
  readonly context: unknown
  /** The outcomes of the calls in the last response, in call order. Empty at the first step. */
  readonly lastResults: readonly StepResult[]
}

/** The outcome of a call. */
export type StepResult = Pick<GuardedResult, 'id' | 'name' | 'arguments' | 'status' | 'content'>

/** Overrides for one request. Omitted keys keep the agent's settings. */
export interface StepSettings {
  /** A name in the agent's `models`. */
  model?: string | undefined
  /** The names of the tools that the model may call. Calls to other tools are refused. `[]` allows none. */
  tools?: readonly string[] | undefined
  toolChoice?: ToolChoice | undefined
  /** Replaces the agent's instructions. */
  instructions?: string | undefined
  /** Merged over the agent's values, key by key. */
  sampling?: Sampling | undefined
  /** Replaces the transcript in this request only. */
  messages?: readonly (Message | HistoryMessage)[] | undefined
}

/**
 * Configures the next request. Called once per step. The result is logged, so that resumes, replays and forks reuse it.
 * @example
 * const prepareStep: PrepareStep = ({ step }) => (step > 3 ? { model: 'small', tools: ['search'] } : {})
 * createAgent({ model, models: { small: openaiChat({ model: 'gpt-5-nano' }) }, tools, prepareStep })
 */
export type PrepareStep = (
  question: StepQuestion,
) => StepSettings | undefined | Promise<StepSettings | undefined>

/** Writes the instructions for each step. */
export type WriteInstructions = (context: unknown) => string | Promise<string>

/** The parts of the agent that has the conversation. Throws a plain failure if no handoff reaches it anymore. */
export function toSpeaker(parts: AgentParts, speaker: string | null | undefined): AgentParts {
  if (speaker == null) return parts
  const mixed = parts.tools.team?.mix(speaker, parts) as AgentParts | undefined
  if (mixed !== undefined) return mixed
  throw createActorError('unknown_agent', describeLostSpeaker(speaker))
}

export function isLostSpeaker(tools: ToolSet, speaker: string | null | undefined): speaker is string {
  return speaker != null && !tools.team?.find(speaker)
}

/** The tools of the current agent, or of the first agent if it is unknown. */
export function getSpeakerTools(tools: ToolSet, speaker: string | null | undefined): ToolSet {
  const member = speaker == null ? undefined : tools.team?.find(speaker)
  return (member as Pick<AgentParts, 'tools'> | undefined)?.tools ?? tools
}

/** The tools as the machine sees them. Without a store, a sub-agent's call cannot be resumed. */
export function getTraits(
  { traits }: ToolSet,
  { store }: Pick<Binding, 'store'>,
): Record<string, ToolTraits> {
  if (store || !Object.values(traits).some(({ delegate }) => delegate)) return traits
  return Object.fromEntries(
    Object.entries(traits).map(([name, { delegate: _delegate, ...rest }]) => [name, rest]),
  )
}

export function hasSharedBudgets(
  { budgets }: Pick<AgentParts, 'budgets'>,
  { binding }: Pick<AgentRuntime, 'binding'>,
): boolean {
  return budgets !== undefined || binding.budgets !== undefined || binding.budgetsAbove !== undefined
}

/** The budgets of a run's parents, agent and options, without duplicates. @throws as `indexBudgets` */
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
