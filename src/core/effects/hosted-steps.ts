import type { AnyActorRef } from 'xstate'
import { truncate } from '../../../guards/lib/cut.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { Json } from '../../../machines/agent/json.js'
import { getStepId } from '../../../machines/agent/step-id.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { StepWork } from '../live/open-steps.js'
import type { HostedCall } from '../models/provider.js'
import { toPlainJson } from '../models/plain-json.js'

/** As the provider reports it, unchecked. */
type ReportedHostedCall = Readonly<Record<keyof HostedCall, unknown>>

/**
 * Tells the calls of tools that the provider itself runs as steps. One that does not end by itself ends with the request.
 * Its input and output are content of the model: where shields screen that, they are left out.
 */
export function createHostedSteps(
  runtime: AgentRuntime,
  self: AnyActorRef,
  context: AgentContext,
): (call: ReportedHostedCall) => void {
  /** Most answers have none. */
  let open: Map<string, StepWork<'hosted', unknown>> | undefined
  const { outputShields, callShields } = context.features
  let begun = 0
  return ({ id, name, item }) => {
    if (typeof id !== 'string' || typeof name !== 'string') return
    open ??= new Map()
    const known = open.get(id)
    if (item === null && known === undefined) {
      begun += 1
      const stepId = `${getStepId(context)}.hosted.${begun}`
      const step = { stepType: 'hosted', stepId, name: truncate(name, 100) } as const
      const work: StepWork<'hosted', unknown> = { step, toEnding: () => ({ payload: { item: null } }) }
      open.set(id, work)
      runtime.steps.start(self, work)
    } else if (item !== null && known !== undefined) {
      open.delete(id)
      const told: Json | null = outputShields || callShields ? null : (toPlainJson(item) ?? null)
      runtime.steps.end(known, { payload: { item: told } })
    }
  }
}
