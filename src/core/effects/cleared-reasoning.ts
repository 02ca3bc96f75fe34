import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json } from '../../../machines/agent/json.js'
import type { ModelResponse } from '../../../machines/agent/response.js'
import { withheldReasoning } from '../../../machines/agent/screening.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { screen } from './shielding.js'

type Reasoning = Pick<ModelResponse, 'reasoning' | 'reasoningDetails'>

/**
 * An answer with its reasoning as output shields let it be seen. Reasoning is no answer: where it is refused it is left
 * out, and the run goes on. Signed details go back to the provider unchanged or not at all.
 */
export async function clearedReasoning<Response extends Reasoning>(
  parts: AgentParts,
  scene: { live: Live; context: AgentContext; signal: AbortSignal },
  response: Response,
): Promise<Response> {
  if (!scene.context.features.outputShields) return response
  const { reasoning, reasoningDetails: details, ...rest } = response
  const said = await look(reasoning, parts, scene)
  const detailed = details && textsIn(details).join('\n')
  const keepsDetails =
    detailed !== undefined && said === reasoning && (await look(detailed, parts, scene)) === detailed
  return { ...rest, reasoning: said, ...(keepsDetails && { reasoningDetails: details }) } as Response
}

async function look(
  text: string,
  parts: AgentParts,
  scene: { live: Live; context: AgentContext; signal: AbortSignal },
): Promise<string> {
  if (text === '') return text
  const { action, content, findings } = await screen(parts, scene, 'output', text)
  scene.signal.throwIfAborted()
  for (const { shield, action: found, message, durationMs } of findings) {
    if (found === 'allow') continue
    const told = found === 'block' ? 'redact' : found
    scene.live.emit({ type: 'shield', point: 'output', shield, action: told, message, durationMs })
  }
  return action === 'block' ? withheldReasoning : content
}

function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}
