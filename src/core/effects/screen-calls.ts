import type { ToolResult } from '../../../machines/agent/batch-calls.js'
import {
  type CallScreening,
  findRejectionReason,
  rejectionPrefix,
  type Screening,
  type ShieldPoint,
  withheldName,
} from '../../../machines/agent/screening.js'
import { listUnclearedCalls } from '../../../machines/agent/uncleared-input.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { getReadableText } from '../shields/readable-part.js'
import { runStaggered } from '../base/event-loop.js'
import { type ShieldReport, createShieldStep } from './shield-step.js'
import { screenText } from './screen-text.js'
import { getCallStepId } from './call-step-id.js'

/** Screens the arguments of the current calls. */
export async function screenCalls(
  parts: AgentParts,
  { signal, self, runtime, context }: EffectScope,
): Promise<CallScreening[]> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const calls = listUnclearedCalls(context)
  const callShield = createShieldSteps()
  for (const { id: callId } of calls) {
    const stepId = `${getCallStepId(context, callId)}.toolInput`
    runtime.steps.start(self, callShield({ stepId, point: 'toolInput', callId }))
  }
  signal.throwIfAborted()
  return runStaggered(calls, signal, async ({ id: callId, name: toolName, arguments: text }) => {
    const look = (content: string) =>
      screenText(parts, { runtime, context, signal }, 'toolInput', content, { callId, toolName })
    const screening = { ...(await look(text)), callId }
    if (parts.tools.get(toolName) !== undefined) return screening
    // A name that is no tool's is what the model says, like its arguments.
    const named = await look(toolName)
    if (named.action !== 'block' && named.action !== 'redact') return screening
    return { ...named, action: 'block' as const, content: '', callId, name: withheldName }
  })
}

/** Screens the results that have come; input shields screen the reasons of rejected calls. */
export async function screenResults(
  parts: AgentParts,
  { signal, self, runtime, context }: EffectScope,
): Promise<CallScreening[]> {
  await runtime.waitUntilDurable()
  signal.throwIfAborted()
  const { inputShields, resultShields } = context.features
  const come = context.calls.flatMap(({ id, name, result, unscreened }) => {
    if (!unscreened || result === undefined) return []
    return [{ id, name, result, reason: inputShields ? findRejectionReason(result) : null }]
  })
  const [callShield, reasonShield] = [createShieldSteps(), createShieldSteps(({ asInput }) => asInput)]
  const startLook = (callId: string, isReason: boolean): void => {
    const step = getCallStepId(context, callId)
    if (isReason) runtime.steps.start(self, reasonShield({ stepId: `${step}.input`, point: 'input', callId }))
    else runtime.steps.start(self, callShield({ stepId: `${step}.toolOutput`, point: 'toolOutput', callId }))
  }
  for (const { id, reason } of come) startLook(id, reason !== null)
  signal.throwIfAborted()
  return runStaggered(come, signal, async ({ id: callId, name: toolName, result, reason }) => {
    const look = (point: ShieldPoint, content: string) =>
      screenText(parts, { runtime, context, signal }, point, content, { callId, toolName })
    if (reason === null)
      return { ...(await screenToolResult(result, (text) => look('toolOutput', text))), callId }
    const { content, ...asInput } = await look('input', reason)
    signal.throwIfAborted()
    if (asInput.action === 'block') return { ...asInput, content, findings: [], callId, asInput }
    const words = rejectionPrefix + content
    if (!resultShields) return { ...allowedScreening, content: words, callId, asInput }
    startLook(callId, false)
    signal.throwIfAborted()
    return { ...(await look('toolOutput', words)), callId, asInput }
  })
}

/** Screens the text of a result, and the readable text of its files. */
async function screenToolResult(
  { content: words, media = [] }: ToolResult,
  look: (text: string) => Promise<Screening>,
): Promise<Omit<CallScreening, 'callId'>> {
  const screening = await look(words)
  const readable = media.map(getReadableText).filter((text) => text !== '')
  if (readable.length === 0 || screening.action === 'block') return screening
  // A file cannot be redacted: it passes unchanged, or is left out.
  const { action, findings } = await look(readable.join('\n'))
  if (action !== 'block' && action !== 'redact') return screening
  const content = `${screening.content}\n${withheldMedia}`
  return {
    ...screening,
    content,
    withoutMedia: true as const,
    findings: [...screening.findings, ...findings],
  }
}

const allowedScreening = { action: 'allow' as const, message: null, findings: [] }

const withheldMedia = '[Withheld: a shield refused what the files of this result say.]'

/**
 * The steps of the screenings of one batch. The actor returns all screenings at once; `said` picks the report of one.
 */
function createShieldSteps(
  said: (screening: CallScreening) => ShieldReport | undefined = (screening) => screening,
) {
  let brought: readonly CallScreening[] | undefined
  let byCall = new Map<string, CallScreening>()
  return (step: { stepId: string; point: Exclude<ShieldPoint, 'output'>; callId: string }) =>
    createShieldStep(step, (screenings: CallScreening[]) => {
      if (brought !== screenings) {
        brought = screenings
        byCall = new Map(screenings.map((screening) => [screening.callId, screening]))
      }
      const screening = byCall.get(step.callId)
      const one = screening && said(screening)
      return one ? [one] : []
    })
}
