import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Features } from '../../../machines/agent/context.js'
import type { AgentParts } from '../live/agent-parts.js'

/** Which optional substates an agent uses. */
export function getFeatures(
  { guards, shields, memory, output, stopWhen, prepareStep, writeInstructions }: AgentParts,
  config: AgentConfig,
): Features {
  return {
    inputShields: shields.input.length > 0,
    outputShields: shields.output.length > 0,
    callShields: shields.toolInput.length > 0,
    resultShields: shields.toolOutput.length > 0,
    retrieval: memory !== undefined,
    fitting: config.context.window > 0,
    userGuards: guards.length > 0,
    structuredOutput: output !== undefined,
    ...((prepareStep || writeInstructions) && { prepareStep: true as const }),
    ...(stopWhen && { stopWhen: true as const }),
  }
}
