import { type CallScreening, withheldName } from '../../../machines/agent/screening.js'
import { uncheckedCalls } from '../../../machines/agent/unscreened.js'
import type { EffectScope } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { readablePart } from '../shields/readable-part.js'
import { inTurns } from '../base/next-turn.js'
import { shieldCall } from './shield-call.js'
import { screen } from './shielding.js'
import { callStepId } from './call-step-id.js'

/** Shows the shields the arguments of the calls at hand. */
export async function screenCalls(
  parts: AgentParts,
  { signal, self, live, context }: EffectScope,
): Promise<CallScreening[]> {
  await live.flushed()
  signal.throwIfAborted()
  const calls = uncheckedCalls(context)
  const callShield = callShields()
  for (const { id: callId } of calls) {
    const stepId = `${callStepId(context, callId)}.toolInput`
    live.steps.start(self, callShield({ stepId, point: 'toolInput', callId }))
  }
  signal.throwIfAborted()
  return inTurns(calls, signal, async ({ id: callId, name: toolName, arguments: text }) => {
    const look = (content: string) =>
      screen(parts, { live, context, signal }, 'toolInput', content, { callId, toolName })
    const screening = { ...(await look(text)), callId }
    if (parts.tools.get(toolName) !== undefined) return screening
    // A name that is no tool's is what the model says, like its arguments.
    const named = await look(toolName)
    if (named.action !== 'block' && named.action !== 'redact') return screening
    return { ...named, action: 'block' as const, content: '', callId, name: withheldName }
  })
}

/** Shows the shields the results that have come. */
export async function screenResults(
  parts: AgentParts,
  { signal, self, live, context }: EffectScope,
): Promise<CallScreening[]> {
  await live.flushed()
  signal.throwIfAborted()
  const come = context.calls.filter((call) => call.unscreened)
  const callShield = callShields()
  for (const { id: callId } of come) {
    const stepId = `${callStepId(context, callId)}.toolOutput`
    live.steps.start(self, callShield({ stepId, point: 'toolOutput', callId }))
  }
  signal.throwIfAborted()
  return inTurns(come, signal, async ({ id: callId, name: toolName, result }) => {
    const look = (content: string) =>
      screen(parts, { live, context, signal }, 'toolOutput', content, { callId, toolName })
    const screening = { ...(await look(result?.content ?? '')), callId }
    const readable = (result?.media ?? []).map(readablePart).filter((text) => text !== '')
    if (readable.length === 0 || screening.action === 'block') return screening
    // Nothing can be taken out of a file: it goes on as it is, or not at all.
    const { action, findings } = await look(readable.join('\n'))
    if (action !== 'block' && action !== 'redact') return screening
    const content = `${screening.content}\n${withheldMedia}`
    return {
      ...screening,
      content,
      withoutMedia: true as const,
      findings: [...screening.findings, ...findings],
    }
  })
}

const withheldMedia = '[Withheld: a shield refused what the files of this result say.]'

/** The looks at one batch: what they come to is brought for all calls at once. */
function callShields() {
  let brought: readonly CallScreening[] | undefined
  let byCall = new Map<string, CallScreening>()
  return (step: { stepId: string; point: 'toolInput' | 'toolOutput'; callId: string }) =>
    shieldCall(step, (screenings: CallScreening[]) => {
      if (brought !== screenings) {
        brought = screenings
        byCall = new Map(screenings.map((screening) => [screening.callId, screening]))
      }
      const screening = byCall.get(step.callId)
      return screening ? [screening] : []
    })
}
