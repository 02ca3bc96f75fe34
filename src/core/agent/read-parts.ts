import type { NewMessage } from '../../../machines/agent/context.js'
import { formatSnippets } from '../memory/retrieved-text.js'
import type { AgentConfig, AgentConfigInput } from '../../../machines/agent/config.js'
import { resolveRequestOptions } from '../config/request-options.js'
import { defineAll } from '../config/definition.js'
import { resolveConfig } from '../config/resolve-config.js'
import type { Json } from '../../../machines/agent/json.js'
import { ConfigError, configError, optionError, inputError } from '../base/errors.js'
import { checkBudgets } from '../budgets/shared-budget.js'
import { checkMemory } from '../memory/retriever.js'
import { createShieldSet } from '../shields/define-shield.js'
import type { ModelProvider } from '../models/provider.js'
import { createStructuredOutput } from '../structured/structured-output.js'
import { checkApprovals, checkPolicies } from '../tools/policy.js'
import { createToolSet } from '../tools/tool-set.js'
import { checkInterpreter } from '../interpreter/table-transition.js'
import { createPriceBook } from '../prices/price-book.js'
import { systemClock, toWholeClock } from '../base/clock.js'
import type { AgentParts } from '../live/agent-parts.js'
import { checkTelemetry } from '../telemetry/safe-telemetry.js'
import { defineGuard, type UserGuard } from '../user-guards/guard.js'
import type { AgentOptions, ResumeOptions, RunOptions, RunAttachment } from './agent-options.js'
import { findOtherName } from '../config/other-names.js'

/** Option names apart from the configuration sections, for hints about misspelled options. */
const optionNames = (
  'model models instructions prepareStep tools skills guards stopWhen sampling toolChoice extraBody prices clock ' +
  'inspect store tokenizer policy approvals shields memory output telemetry interpreter budgets'
).split(' ')

export function readParts(input: AgentOptions | null | undefined): AgentParts {
  const options = input ?? ({} as AgentOptions)
  const { model, models, instructions, prepareStep, tools, skills } = options
  const { stopWhen, tokenizer, policy, approvals, output, sampling, toolChoice, extraBody } = options
  const sections: AgentConfigInput = Object.fromEntries(
    Object.entries(options).filter(([key]) => !optionNames.includes(key)),
  )
  expectModel(model, 'model')
  for (const [name, one] of Object.entries(models ?? {})) expectModel(one, `models.${name}`)
  expectFunction(stopWhen, 'stopWhen', '({ results }) => true or false')
  expectFunction(prepareStep, 'prepareStep', '({ step }) => ({ model, tools, … })')
  if (tokenizer !== undefined && typeof tokenizer?.count !== 'function')
    throw configError('tokenizer must be { count: (text) => tokens }.', 'tokenizer')
  if (skills !== undefined && ![skills?.list, skills?.tools].every(Array.isArray))
    throw configError('skills must be created with skills().', 'skills')
  const set = createToolSet(skills ? [...(tools ?? []), ...skills.tools] : (tools ?? []))
  if (set.isHosted) [model, ...Object.values(models ?? {})].forEach(expectSearch)
  const written = typeof instructions === 'function' ? instructions : undefined
  const fixed = written ? undefined : instructions
  const requestOptions = resolveRequestOptions({ instructions: fixed, sampling, toolChoice, extraBody })
  const { instructions: own } = requestOptions
  const parts: AgentParts = {
    model,
    // Answers record their model if another model may continue the session.
    ...((models || set.team) && { models: models ?? {} }),
    ...(prepareStep && { prepareStep }),
    ...(written && { writeInstructions: written }),
    ...(skills?.instructions !== undefined && { skillIndex: skills.instructions }),
    // The index of the skills follows the agent's own instructions.
    instructions: [own, skills?.instructions].filter(Boolean).join('\n\n') || (own ?? null),
    tools: set,
    ...(skills && { skills: skills.list }),
    guards: checkGuards(options.guards ?? []),
    ...(stopWhen && { stopWhen }),
    ...(policy !== undefined && { policies: checkPolicies(policy) }),
    ...(approvals !== undefined && checkApprovals(approvals)),
    shields: createShieldSet(options.shields),
    memory: checkMemory(options.memory),
    sampling: requestOptions.sampling ?? {},
    toolChoice: requestOptions.toolChoice,
    extraBody: requestOptions.extraBody ?? {},
    prices: createPriceBook(options.prices),
    config: resolveConfig(sections, undefined, optionNames),
    clock: toWholeClock(options.clock ?? systemClock),
    telemetry: checkTelemetry(options.telemetry),
    interpreter: checkInterpreter(options.interpreter),
    ...(tokenizer && { tokenizer }),
    budgets: checkBudgets(options.budgets),
    ...(output !== undefined && { output: createStructuredOutput(output) }),
  }
  set.team?.check(parts, { isBegun: false })
  warnOfUnreachable(sections, parts.config)
  return parts
}

function expectModel(model: Partial<ModelProvider> | null | undefined, key: string): void {
  if (typeof model?.request === 'function') return
  throw configError(`${key} must be a ModelProvider, such as openaiChat({ model: '…' }).`, key)
}

function expectSearch({ searchesTools, model }: ModelProvider): void {
  const text = `toolSearch({ hosted: true }) needs a provider that searches tools, and the provider of '${model}' does not. Use openaiResponses() with an OpenAI model, or omit hosted.`
  if (!searchesTools) throw new ConfigError('invalid_tool', text, 'hosted')
}

function expectFunction(value: unknown, key: string, form: string): void {
  if (value === undefined || typeof value === 'function') return
  throw configError(`${key} must be a function: ${form}.`, key)
}

/** Warns of settings that can never take effect. Loaded on demand, because most agents have none. */
function warnOfUnreachable(input: AgentConfigInput, config: AgentConfig): void {
  const { limits, guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs } = input
  const isWritten = [guardrails, completion, toolCalls, retry, streamIdleMs, contentIdleMs]
  if ([...isWritten, limits?.outputTokens].every((one) => one === undefined)) return
  void import('../config/unreachable-settings.js').then(
    ({ warnOfUnreachableSettings }) => warnOfUnreachableSettings(input, config),
    // A failed load only suppresses a warning.
    () => undefined,
  )
}

/** Checks the guards. Throws a ConfigError: `duplicate_guard` for a repeated name, otherwise `invalid_guard`. */
function checkGuards(guards: readonly UserGuard[]): readonly UserGuard[] {
  if (!Array.isArray(guards)) throw new ConfigError('invalid_guard', 'guards must be an array.', 'guards')
  return defineAll('guard', 'guards', guards as readonly UserGuard[], defineGuard<Json>, (name) => {
    const text = `Two guards are named '${name}'. Rename one, because a guard's state is stored under its name.`
    return new ConfigError('duplicate_guard', text, name)
  })
}

/**
 * Checks every model that a run may use, including `models` and handoff targets.
 * @throws {ConfigError} from the model's `check`, with the name of its option unless that is `model`, and from
 * `Team.check`
 */
export function checkModels(parts: AgentParts): void {
  parts.model.check?.()
  checkNamedModels('', parts)
  const { team } = parts.tools
  if (!team) return
  team.check(parts, { isBegun: true })
  for (const [name, agent] of team.list() as readonly [string, AgentParts][]) {
    checkAt(`model of '${name}'`, agent.model)
    checkNamedModels(` of '${name}'`, agent)
  }
}

function checkNamedModels(whose: string, { models = {} }: AgentParts): void {
  for (const [name, model] of Object.entries(models)) checkAt(`models.${name}${whose}`, model)
}

function checkAt(place: string, model: ModelProvider): void {
  try {
    model.check?.()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.code, `${place}: ${error.message}`, error.subject, { cause: error })
  }
}

const runOptionNames = [
  'session',
  'by',
  'tags',
  'attachments',
  'signal',
  'limits',
  'context',
  'journal',
  'budgets',
  'inspect',
] as const satisfies (keyof RunOptions)[]

export const resumeOptionNames = ['signal', 'context', 'budgets', 'inspect'] satisfies (keyof ResumeOptions)[]

/** Throws a UsageError for an unknown or invalid option, such as a limit outside `limits`. */
export function checkRunOptions(
  options: unknown,
  call = 'run()',
  names: readonly string[] = runOptionNames,
): RunOptions {
  if (options === undefined) return {}
  const shape = 'Run options must be an object, such as { session, signal, limits, context }.'
  if (typeof options !== 'object' || options === null) throw optionError(shape, 'options')
  const strange = Object.keys(options).find((key) => !names.includes(key))
  if (strange !== undefined) {
    const other = findOtherName(strange)
    const limits = names.includes('limits') ? '. Limits belong in limits: { … }' : ''
    const hint = other ? `Use ${other}.` : `The options are ${names.join(', ')}${limits}.`
    throw optionError(`${call} has no option '${strange}'. ${hint}`, strange)
  }
  const { signal, journal, budgets } = options as RunOptions
  checkBudgets(budgets)
  if (signal !== undefined && typeof signal.addEventListener !== 'function')
    throw optionError('signal must be an AbortSignal. Pass controller.signal.', 'signal')
  if (journal !== undefined && !(typeof journal.append === 'function' && typeof journal.flush === 'function'))
    throw optionError('journal must have append(entry) and flush().', 'journal')
  return options
}

/** The documents are marked as data, so that the model does not read them as the user's instructions. */
export function withAttachments(messages: NewMessage[], attachments: unknown): NewMessage[] {
  const last = messages.at(-1)
  if (attachments === undefined || last === undefined) return messages
  const documents = checkAttachments(attachments).map(({ name, text }) => ({ source: name, text }))
  if (documents.length === 0) return messages
  const data = formatSnippets(documents, { maxChars: Infinity })
  const content =
    typeof last.content === 'string'
      ? `${last.content}\n\n${data}`
      : [...last.content, { type: 'text' as const, text: data }]
  return [...messages.slice(0, -1), { ...last, content }]
}

function checkAttachments(attachments: unknown): RunAttachment[] {
  const hint = 'Load it first: await loadAttachment(…) from statewright/memory.'
  if (!Array.isArray(attachments)) throw inputError('attachments must be a list.', 'attachments')
  for (const [i, one] of attachments.entries()) {
    const { name, text } = (one ?? {}) as { name?: unknown; text?: unknown }
    if (typeof name !== 'string' || typeof text !== 'string')
      throw inputError(`attachments[${i}] needs a name and text. ${hint}`, `attachments[${i}]`)
  }
  return attachments as RunAttachment[]
}
