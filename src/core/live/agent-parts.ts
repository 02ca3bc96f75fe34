import type { JsonObject } from '../../../machines/agent/json.js'
import type { AgentConfig } from '../../../machines/agent/config.js'
import type { BudgetsOption } from '../budgets/budgets-option.js'
import type { Tokenizer } from '../context/default-tokenizer.js'
import type { ModelProvider, Sampling, ToolChoice } from '../models/provider.js'
import type { SkillInfo } from '../tools/skill-tools.js'
import type { ToolSet } from '../tools/tool-set.js'
import type { Retriever } from '../memory/retriever.js'
import type { ShieldSet } from '../shields/shield-set.js'
import type { StructuredOutput } from '../structured/structured-output.js'
import type { PriceBook } from '../prices/price-book.js'
import type { PrepareStep, WriteInstructions } from './prepare-step.js'
import type { UserGuard } from '../user-guards/guard.js'
import type { StopWhen } from '../user-guards/stop-when.js'
import type { Clock } from '../base/clock.js'
import type { Interpreter } from '../interpreter/interpreter.js'
import type { Telemetry } from '../telemetry/telemetry.js'

/** The parts of an agent, besides its plain configuration. */
export interface AgentParts {
  model: ModelProvider
  instructions: string | null
  tools: ToolSet
  /** What its skills are. Absent: it has none. */
  skills?: readonly SkillInfo[]
  /** The guards of its author's own. */
  guards: readonly UserGuard[]
  /** Its instructions, where they are written anew for each step; those of `instructions` are then the index of skills alone. */
  writeInstructions?: WriteInstructions
  /** The index of its skills. */
  skillIndex?: string
  /** Decides what each request is made of. */
  prepareStep?: PrepareStep
  /** What a step may ask in place of `model`. */
  models?: Readonly<Record<string, ModelProvider>>
  /** Whether a run ends with the results of a batch. Absent: it never does by this. */
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
  /** Asked about each user message. */
  memory: Retriever | undefined
  config: AgentConfig
  clock: Clock
  /** What takes the machine's transitions. */
  interpreter: Interpreter
  /** What its runs share with others, to spend from. Absent: nothing. */
  budgets?: BudgetsOption | undefined
  /** What measures its runs. */
  telemetry: Telemetry | undefined
}
