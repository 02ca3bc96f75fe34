import { resolveRequestOptions } from '../config/request-options.js'
import { resolveConfig } from '../config/resolve-config.js'
import { warnOfUnreachable } from '../config/warn-of-unreachable.js'
import { ConfigError } from '../base/errors.js'
import { checkBudgets } from '../budgets/budgets-option.js'
import { checkMemory } from '../memory/retriever.js'
import { createShieldSet } from '../shields/shield-set.js'
import { createStructuredOutput } from '../structured/structured-output.js'
import { createToolSet } from '../tools/tool-set.js'
import { checkInterpreter } from '../interpreter/interpreter.js'
import { createPriceBook } from '../prices/price-book.js'
import { checkGuards } from '../user-guards/guard-set.js'
import type { AgentOptions } from './agent-options.js'
import { systemClock } from '../base/clock.js'
import type { AgentParts } from '../live/agent-parts.js'
import { checkTelemetry } from '../telemetry/combine-telemetry.js'

/** What stands beside the sections of the configuration, so that a mistyped one is recognised. */
const optionNames = [
  'model',
  'instructions',
  'tools',
  'guards',
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
    instructions,
    tools,
    guards,
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
  if (typeof model?.request !== 'function') {
    throw new ConfigError(
      'invalid_config',
      "model must be a ModelProvider, such as openaiChat({ model: '…' }).",
      'model',
    )
  }
  if (tokenizer !== undefined && typeof tokenizer?.count !== 'function') {
    throw new ConfigError('invalid_config', 'tokenizer must be { count: (text) => tokens }.', 'tokenizer')
  }
  const set = createToolSet(tools ?? [])
  const asked = resolveRequestOptions({ instructions, sampling, toolChoice, extraBody })
  const parts: AgentParts = {
    model,
    instructions: asked.instructions ?? null,
    tools: set,
    guards: checkGuards(guards ?? []),
    shields: createShieldSet(shields),
    memory: checkMemory(memory),
    sampling: asked.sampling ?? {},
    toolChoice: asked.toolChoice,
    extraBody: asked.extraBody ?? {},
    prices: createPriceBook(prices),
    config: resolveConfig(sections, undefined, optionNames),
    clock: clock ?? systemClock,
    telemetry: checkTelemetry(telemetry),
    interpreter: checkInterpreter(interpreter),
    ...(tokenizer && { tokenizer }),
    budgets: checkBudgets(budgets),
    ...(output !== undefined && { output: createStructuredOutput(output) }),
  }
  warnOfUnreachable(sections, parts.config)
  return parts
}
