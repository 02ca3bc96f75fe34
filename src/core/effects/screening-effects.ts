import { getCallStepId, type StepWork } from '../live/open-steps.js'
import {
  type OutputScreening,
  type Screening,
  type CallScreening,
  findRejectionReason,
  rejectionPrefix,
  type ShieldPoint,
  withheldName,
  type InputScreening,
} from '../../../machines/agent/screening.js'
import type { AgentContext } from '../../../machines/agent/context.js'
import type { BatchCall, ToolResult } from '../../../machines/agent/batch-calls.js'
import { listUnclearedCalls, listUnclearedInput } from '../../../machines/agent/mask-uncleared.js'
import { type ContentPart, type UserMessage, getStepId } from '../../../machines/agent/messages.js'
import type { Step, ShieldViolation } from '../../../machines/agent/announcements.js'
import { readOutput } from '../structured/read-output.js'
import type { EffectScope } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { askShields, findGravest } from '../shields/ask-shields.js'
import { getReadableText, joinReadableTexts } from '../models/media.js'
import { prepareCalls } from '../tools/prepare-calls.js'
import { toPrepareOptions } from './prepare-options.js'
import { runStaggered } from '../base/platform.js'
import type { ShieldScene } from '../shields/define-shield.js'

export async function screenInput(parts: AgentParts, scope: EffectScope): Promise<InputScreening[]> {
  const { context, abort } = scope
  const note = startStep(scope, { stepId: `${getStepId(context)}.input`, point: 'input' })
  abort.throwIfAborted()
  const look: ScreenText = (text) => screenText(parts, scope, 'input', text)
  const looks = listUnclearedInput(context).map(async ({ content }, index) =>
    (await screenContent(content, look)).map((screening) => ({ ...screening, index })),
  )
  const screenings = (await Promise.all(looks)).flat()
  note(screenings)
  return screenings
}

type ShieldReport = Omit<Screening, 'content'>
type ShieldStep = Extract<Step, { stepType: 'shield_call' }>

/**
 * Starts a step, which ends with the actor. Returns a function that notes its reports. A subscriber may stop the run when
 * the step starts, so check `abort` afterwards.
 */
function startStep(
  { runtime, self }: EffectScope,
  step: Omit<ShieldStep, 'stepType'>,
): (reports: readonly ShieldReport[]) => void {
  let noted: readonly ShieldReport[] = []
  const work: StepWork<'shield_call', unknown> = {
    step: { stepType: 'shield_call', ...step },
    toEnding: (output) => ({ payload: { violation: output === null ? null : findViolation(noted) } }),
  }
  runtime.steps.start(self, work)
  return (reports) => {
    noted = reports
  }
}

type ScreenText = (text: string) => Promise<Screening>
type PartScreening = Omit<InputScreening, 'index'>

export async function screenContent(
  content: UserMessage['content'],
  look: ScreenText,
): Promise<PartScreening[]> {
  if (typeof content === 'string') return [{ ...(await look(content)), part: null }]
  const looks = content.map(async (one, part) => {
    const text = getReadableText(one)
    return text === '' ? [] : [{ ...(await look(text)), part }]
  })
  const screenings = (await Promise.all(looks)).flat()
  // A message without text is screened too, because a message without a screening counts as blocked.
  if (screenings.length === 0) return [{ ...(await look('')), part: null }]
  const seen = screenings.some(({ action }) => action === 'block')
    ? screenings
    : await screenJoinedTexts(screenings, content, look)
  // A blocked message is dropped completely, including its harmless parts.
  return seen.some(({ action }) => action === 'block') ? seen.map((one) => ({ ...one, content: '' })) : seen
}

/** Texts that are harmless alone can be forbidden together, directly or with a line break between. */
async function screenJoinedTexts(
  screenings: PartScreening[],
  content: readonly ContentPart[],
  look: ScreenText,
): Promise<PartScreening[]> {
  const texts = screenings.filter(({ part }) => part !== null && content[part]?.type === 'text')
  const [first, ...others] = texts
  if (first === undefined || others.length === 0) return screenings
  for (const between of ['', '\n']) {
    // The second check is not needed if the first one finds something.
    const joined = await look(texts.map((text) => text.content).join(between))
    if (joined.action === 'block') return [...screenings, { ...joined, part: null }]
    if (joined.action === 'redact') {
      const merged = { ...joined, findings: [...first.findings, ...joined.findings], part: first.part }
      // The finding spans several texts, so they are merged into one.
      const emptied = others.map((text) => ({ ...text, action: 'redact' as const, content: '' }))
      return [...screenings.filter((one) => !texts.includes(one)), merged, ...emptied]
    }
  }
  return screenings
}

/** Screens a complete answer together with its earlier pieces, and emits the text that was held back. */
export async function screenOutput(parts: AgentParts, scope: EffectScope): Promise<OutputScreening> {
  const { abort, runtime, context } = scope
  const { pendingAnswer, unscreenedText, continuedText } = context
  const stepId = `${pendingAnswer?.stepId ?? context.runId}.output`
  const note = startStep(scope, { stepId, point: 'output' })
  abort.throwIfAborted()
  const answer = (unscreenedText?.text ?? '') + (pendingAnswer?.text ?? '')
  const screening = toLastPiece(continuedText, await screenText(parts, scope, 'output', answer))
  note([screening])
  abort.throwIfAborted()
  runtime.streamCleared(screening.action === 'block' ? '' : screening.content)
  return screening.action === 'redact'
    ? { ...screening, ...(await findRedactedProblem(screening, parts, context)) }
    : screening
}

/** The schema problem of a redacted answer. Redaction as such does not make an answer invalid. */
async function findRedactedProblem(
  { content }: Screening,
  { output }: AgentParts,
  { pendingAnswer, outputProblem }: AgentContext,
): Promise<Pick<OutputScreening, 'outputProblem'>> {
  if (output === undefined || (pendingAnswer?.outputProblem ?? outputProblem) === null) return {}
  const reading = await readOutput(content, output)
  return { outputProblem: reading.ok ? null : reading.problem }
}

/** Reduces the screening of a complete answer to its last piece. The earlier pieces have already been emitted. */
function toLastPiece(pieces: string, screening: Screening): Screening {
  const { action, content, message } = screening
  if (action === 'block') return screening
  if (content.startsWith(pieces)) return { ...screening, content: content.slice(pieces.length) }
  const why = message ?? 'A shield refused the answer.'
  return {
    ...screening,
    action: 'block',
    content: '',
    message: `${why} It starts in a chunk that was already shown, so it cannot be redacted.`,
  }
}

export async function screenCalls(parts: AgentParts, scope: EffectScope): Promise<CallScreening[]> {
  const { abort, runtime, context } = scope
  const calls = listUnclearedCalls(context)
  const notes = new Map(
    calls
      .filter((call) => call.unscreenedArguments)
      .map(({ id }) => [id, startCallStep(scope, id, 'toolInput')] as const),
  )
  abort.throwIfAborted()
  const options = toPrepareOptions(parts, context, runtime.binding, abort)
  const screen = async (call: BatchCall): Promise<CallScreening> => {
    const { id: callId, name: toolName, arguments: text } = call
    if (!call.unscreenedArguments) return { ...allowedScreening, content: text, callId }
    const look = (content: string) => screenText(parts, scope, 'toolInput', content, { callId, toolName })
    const screening = { ...(await look(text)), callId }
    if (parts.tools.get(toolName) !== undefined) return screening
    // An unknown tool name was written by the model, like the arguments.
    const named = await look(toolName)
    if (named.action !== 'block' && named.action !== 'redact') return screening
    return { ...named, action: 'block' as const, content: '', callId, name: withheldName }
  }
  return runStaggered(calls, abort, async (call) => {
    const screening = await screen(call)
    notes.get(call.id)?.([screening])
    const { action, content } = screening
    const isChanged = call.undecided === true || (call.decisions !== undefined && action === 'redact')
    if (!isChanged || action === 'block') return screening
    const called = { name: call.name, arguments: content }
    const request = { id: call.id, type: 'function' as const, function: called }
    const [prepared] = await prepareCalls([request], parts.tools, options)
    return prepared?.approvalTimedOut ? screening : { ...screening, decisions: prepared?.decisions ?? [] }
  })
}

/** Screens the received results. Reasons for rejecting calls are screened by input shields. */
export async function screenResults(parts: AgentParts, scope: EffectScope): Promise<CallScreening[]> {
  const { abort, context } = scope
  const { inputShields, resultShields } = context.features
  const come = context.calls.flatMap(({ id, name, result, unscreenedResult }) => {
    if (!unscreenedResult || result === undefined) return []
    return [{ id, name, result, reason: inputShields ? findRejectionReason(result) : null }]
  })
  const begun = come.map((one) => {
    return { ...one, note: startCallStep(scope, one.id, one.reason === null ? 'toolOutput' : 'input') }
  })
  abort.throwIfAborted()
  return runStaggered(begun, abort, async ({ id: callId, name: toolName, result, reason, note }) => {
    const look = (point: ShieldPoint, content: string) =>
      screenText(parts, scope, point, content, { callId, toolName })
    if (reason === null) {
      const screening = await screenToolResult(result, (text) => look('toolOutput', text))
      note([screening])
      return { ...screening, callId }
    }
    const { content, ...asInput } = await look('input', reason)
    note([asInput])
    abort.throwIfAborted()
    if (asInput.action === 'block') return { ...asInput, content, findings: [], callId, asInput }
    const words = rejectionPrefix + content
    if (!resultShields) return { ...allowedScreening, content: words, callId, asInput }
    const noteResult = startCallStep(scope, callId, 'toolOutput')
    abort.throwIfAborted()
    const screening = await look('toolOutput', words)
    noteResult([screening])
    return { ...screening, callId, asInput }
  })
}

function startCallStep(scope: EffectScope, callId: string, point: Exclude<ShieldPoint, 'output'>) {
  return startStep(scope, { stepId: `${getCallStepId(scope.context, callId)}.${point}`, point, callId })
}

async function screenToolResult(
  { content: words, media = [] }: ToolResult,
  look: (text: string) => Promise<Screening>,
): Promise<Omit<CallScreening, 'callId'>> {
  const screening = await look(words)
  const readable = joinReadableTexts(media)
  if (readable === '' || screening.action === 'block') return screening
  // A file cannot be redacted, so it is either passed on unchanged or dropped.
  const { action, findings } = await look(readable)
  if (action !== 'block' && action !== 'redact') return screening
  const content = `${screening.content}\n${withheldMedia}`
  return { ...screening, content, withoutMedia: true, findings: [...screening.findings, ...findings] }
}

const allowedScreening = { action: 'allow' as const, message: null, findings: [] }

const withheldMedia = "[Withheld: a shield refused the content of this result's files.]"

function findViolation(screenings: readonly ShieldReport[]): ShieldViolation | null {
  const action = findGravest(screenings)
  if (action === undefined) return null
  const gravest = screenings.find((screening) => screening.action === action)
  const findings = screenings.flatMap((screening) => screening.findings)
  const objecting = findings.filter((finding) => finding.action !== 'allow').map(({ shield }) => shield)
  return { action, message: gravest?.message ?? null, shields: [...new Set(objecting)] }
}

/** Screens a text with the shields at one point, using the run's clock. Drops the content if a shield blocks it. */
export async function screenText(
  { shields }: AgentParts,
  { runtime, context, abort }: Omit<EffectScope, 'self'>,
  point: ShieldPoint,
  content: string,
  scene: Pick<ShieldScene, 'callId' | 'toolName'> = {},
): Promise<Screening> {
  const { timeoutMs, failOpen } = shields
  const { clock, binding, telemetry } = runtime
  const ask = () =>
    askShields(shields[point], content, {
      ...scene,
      point,
      signal: abort.signal,
      clock,
      timeoutMs,
      failOpen,
      messages: context.messages,
      context: binding.context,
      reportThrown: (message) => runtime.emit({ type: 'warning', code: 'shield_failed', message }),
    })
  const outcome = await (telemetry
    ? telemetry.around({ type: 'shield_call', point, callId: scene.callId }, ask)
    : ask())
  return outcome.action === 'block' ? { ...outcome, content: '' } : outcome
}
