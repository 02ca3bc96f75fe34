import type { AgentContext } from '../../../machines/agent/context.js'
import type { Screening, ShieldPoint } from '../../../machines/agent/screening.js'
import { askShields, type AskShieldsOptions } from '../shields/ask-shields.js'
import type { ShieldScene } from '../shields/shield.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'

/** Screens a text with the shields of one point, on the run's own clock. Blocked content is dropped here. */
export async function screenText(
  { shields }: AgentParts,
  { runtime, context, signal }: { runtime: AgentRuntime; context: AgentContext; signal: AbortSignal },
  point: ShieldPoint,
  content: string,
  scene: Pick<ShieldScene, 'callId' | 'toolName'> = {},
): Promise<Screening> {
  const { timeoutMs, failOpen } = shields
  const { clock, binding } = runtime
  const { messages } = context
  const { telemetry } = runtime
  const whole: AskShieldsOptions = {
    ...scene,
    point,
    signal,
    clock,
    timeoutMs,
    failOpen,
    messages,
    context: binding.context,
    reportThrown: (message) => runtime.emit({ type: 'warning', code: 'shield_failed', message }),
  }
  const outcome = await (telemetry
    ? telemetry.around({ type: 'shield_call', point, callId: scene.callId }, () =>
        askShields(shields[point], content, whole),
      )
    : askShields(shields[point], content, whole))
  return outcome.action === 'block' ? { ...outcome, content: '' } : outcome
}
