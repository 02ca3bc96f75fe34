import type { AgentConfig } from '../../../machines/agent/config.js'
import type { Features } from '../../../machines/agent/context.js'
import type { AgentParts } from '../live/agent-parts.js'

/** Which optional substates an agent uses. */
export function getFeatures(
  { guards, shields, memory, output, stopWhen, tools, ...own }: AgentParts,
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
    ...([own, ...listMembers(tools)].some(preparesSteps) && { prepareStep: true as const }),
    ...(stopWhen && { stopWhen: true as const }),
  }
}

type Preparing = Pick<AgentParts, 'prepareStep' | 'writeInstructions'>

/** The author of any agent that the session can be handed to may decide about steps. */
const listMembers = ({ team }: AgentParts['tools']): Preparing[] =>
  team ? team.list().map(([, agent]) => agent as Preparing) : []

const preparesSteps = ({ prepareStep, writeInstructions }: Preparing): boolean =>
  prepareStep !== undefined || writeInstructions !== undefined
