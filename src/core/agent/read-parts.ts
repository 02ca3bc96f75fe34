import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import { resolveRequestOptions } from '../config/request-options.js'
import { resolveConfig } from '../config/resolve-config.js'
import { ConfigError } from '../base/errors.js'
import { checkBudgets } from '../budgets/budgets-option.js'
import { checkMemory } from '../memory/retriever.js'
import { createShieldSet } from '../shields/shield-set.js'
import type { ModelProvider } from '../models/provider.js'
import { createStructuredOutput } from '../structured/structured-output.js'
import { createToolSet } from '../tools/tool-set.js'
import { checkInterpreter } from '../interpreter/interpreter.js'
import { createPriceBook } from '../prices/price-book.js'
import type { AgentSkills } from '../tools/skill-tools.js'
import { systemClock, toWholeClock } from '../base/clock.js'
import type { AgentParts } from '../live/agent-parts.js'
import { checkTelemetry } from '../telemetry/combine-telemetry.js'
import { loadOnce } from '../base/platform.js'
import { defineGuard } from '../user-guards/define-guard.js'
import type { UserGuard } from '../user-guards/guard.js'
import type { AgentOptions } from './agent-options.js'

/** What stands beside the sections of the configuration, so that a mistyped one is recognised. */
const optionNames = [
  'model',
  'models',
  'instructions',
  'prepareStep',
  'tools',
  'skills',
  'guards',
  'stopWhen',
  'sampling',
  'toolChoice',
  'extraBody',
  'prices',
  'clock',
  'inspect',
  'store',
  'tokenizer',
  'shields',
  'memory',
  'output',
  'telemetry',
  'interpreter',
  'budgets',
]

/** The options, checked, with every default. */
export function readParts(options: AgentOptions | null | undefined): AgentParts {
  const {
    model,
    models,
    instructions,
    prepareStep,
    tools,
    skills,
    guards,
    stopWhen,
    sampling,
    toolChoice,
    extraBody,
    prices,
    clock,
    inspect: _inspect,
    store: _store,
    tokenizer,
    shields,
    memory,
    output,
    telemetry,
    interpreter,
    budgets,
    ...sections
  } = options ?? ({} as AgentOptions)
  expectModel(model, 'model')
  for (const [name, one] of Object.entries(models ?? {})) expectModel(one, `models.${name}`)
  expectFunction(stopWhen, 'stopWhen', '({ results }) => true or false')
  expectFunction(prepareStep, 'prepareStep', '({ step }) => ({ model, tools, … })')
  if (tokenizer !== undefined && typeof tokenizer?.count !== 'function') {
    throw new ConfigError('invalid_config', 'tokenizer must be { count: (text) => tokens }.', 'tokenizer')
  }
  if (skills !== undefined && ![skills?.list, skills?.tools].every(Array.isArray))
    throw new ConfigError('invalid_config', 'skills must be what skills() returns.', 'skills')
  const set = createToolSet(skills ? [...(tools ?? []), ...skills.tools] : (tools ?? []))
  if (set.isHosted) [model, ...Object.values(models ?? {})].forEach(expectSearch)
  const written = typeof instructions === 'function' ? instructions : undefined
  const asked = resolveRequestOptions({
    instructions: typeof instructions === 'function' ? undefined : instructions,
    sampling,
    toolChoice,
    extraBody,
  })
  const parts: AgentParts = {
    model,
    // Answers of one model are marked where others may go on.
    ...((models || set.team) && { models: models ?? {} }),
    ...(prepareStep && { prepareStep }),
    ...(written && { writeInstructions: written }),
    ...(skills?.instructions !== undefined && { skillIndex: skills.instructions }),
    instructions: joinInstructions(asked.instructions, skills) ?? null,
    tools: set,
    ...(skills && { skills: skills.list }),
    guards: checkGuards(guards ?? []),
    ...(stopWhen && { stopWhen }),
    shields: createShieldSet(shields),
    memory: checkMemory(memory),
    sampling: asked.sampling ?? {},
    toolChoice: asked.toolChoice,
    extraBody: asked.extraBody ?? {},
    prices: createPriceBook(prices),
    config: resolveConfig(sections, undefined, optionNames),
    clock: toWholeClock(clock ?? systemClock),
    telemetry: checkTelemetry(telemetry),
    interpreter: checkInterpreter(interpreter),
    ...(tokenizer && { tokenizer }),
    budgets: checkBudgets(budgets),
    ...(output !== undefined && { output: createStructuredOutput(output) }),
  }
  set.team?.check(parts, { isBegun: false })
  warnOfUnreachable(sections, parts.config)
  return parts
}

function expectModel(model: Partial<ModelProvider> | null | undefined, key: string): void {
  if (typeof model?.request === 'function') return
  throw new ConfigError(
    'invalid_config',
    `${key} must be a ModelProvider, such as openaiChat({ model: '…' }).`,
    key,
  )
}

function expectSearch({ searchesTools, model }: ModelProvider): void {
  if (searchesTools) return
  throw new ConfigError(
    'invalid_tool',
    `toolSearch({ hosted: true }) needs models whose provider searches, and '${model}' has none: use openaiResponses() with a model of OpenAI, or leave hosted out.`,
    'hosted',
  )
}

function expectFunction(given: unknown, key: string, form: string): void {
  if (given === undefined || typeof given === 'function') return
  throw new ConfigError('invalid_config', `${key} must be a function: ${form}.`, key)
}

const loadSettings = loadOnce(() => import('../config/unreachable-settings.js'))

/**
 * Warns the process, a moment later, of settings that never take effect under the others. What knows them is loaded for
 * those alone who have written such a setting.
 */
function warnOfUnreachable(given: AgentConfigInput, config: AgentConfig): void {
  const { limits, guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs } = given
  const isWritten = [guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs]
  if ([...isWritten, limits?.outputTokens].every((one) => one === undefined)) return
  void loadSettings().then(
    ({ warnOfUnreachableSettings }) => warnOfUnreachableSettings(given, config),
    // A warning is all that is lost.
    () => undefined,
  )
}

/**
 * The guards of an agent, checked. Throws a ConfigError: `duplicate_guard` when two have one name, `invalid_guard` for
 * what is none.
 */
function checkGuards(guards: readonly UserGuard[]): readonly UserGuard[] {
  if (!Array.isArray(guards)) throw new ConfigError('invalid_guard', 'guards must be an array.', 'guards')
  const names = new Set<string>()
  return guards.map((entry: UserGuard, index) => {
    if (typeof entry !== 'object' || entry === null) {
      const place = `guards[${index}]`
      throw new ConfigError(
        'invalid_guard',
        `${place} is not a guard. Make it with defineGuard({ … }).`,
        place,
      )
    }
    // A definition without defineGuard gets the same checks.
    const guard = defineGuard(entry)
    if (names.has(guard.name)) {
      throw new ConfigError(
        'duplicate_guard',
        `Two guards are named '${guard.name}'. Rename one: what a guard remembers is stored under its name.`,
        guard.name,
      )
    }
    names.add(guard.name)
    return guard
  })
}

/** The index of the skills follows the agent's own instructions. */
function joinInstructions(own: string | undefined, skills: AgentSkills | undefined): string | undefined {
  return [own, skills?.instructions].filter(Boolean).join('\n\n') || own
}
