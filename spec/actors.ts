import { Broken } from './rules.js'
import { type Call, type Question, type Run, type Usage, findSpent, spend } from './run.js'
import { end, halt, rest } from './settle.js'

interface Screening {
  action?: unknown
  content?: unknown
  index?: number
  callId?: string
  outputProblem?: string | null
}
interface Finding {
  action: string
  onHalt: string
  callIds: string[] | null
}
export interface Response {
  text: string
  refusal: string | null
  toolCalls: { id: string; function: { name: string }; hosted?: unknown }[]
  finishReason: string | null
  usage: Usage
}

/** An event of a log: those of its fields that the rules read. */
export interface LoggedEvent {
  type: string
  now?: number
  withheld?: boolean
  callId?: string
  messageId?: string
  arguments?: string
  why?: string
  messages?: unknown[]
  questions?: Question[]
  unbegun?: string[]
  names?: string[]
  tools?: Run['setup']['tools']
  usage?: Usage | null
  partial?: { text: string; usage: Usage | null }
  result?: { status: string; child?: { state: string; code: string | null } }
  isError?: boolean
  error?: Record<'kind' | 'code' | 'partialText', string> &
    Record<'retryAfterMs' | 'jitter', number | null> & { usage: Usage | null; budget?: string }
  output?: unknown
}

const isBlock = ({ action, content }: Screening): boolean =>
  action === 'block' || typeof action !== 'string' || typeof content !== 'string'

export const keepPartial = (run: Run, text = ''): Run =>
  text === '' ? run : { ...run, numbered: run.numbered + 1, uncleared: 0 }

/** The batch is over: what was started and has no result ran to an end that is not known. */
export function closeStarted(run: Run): Run[] {
  const calls = run.calls.map((c) =>
    c.started && !c.done ? { ...c, done: true, failed: true, perhaps: false } : c,
  )
  return [{ ...run, place: 'dispatching', calls }]
}

/** What an actor of the loop brings. */
export function hearActor(run: Run, actor: string, { output }: LoggedEvent, now: number): Run[] {
  const looks = (Array.isArray(output) ? output : [output ?? {}]) as Screening[]
  const verdictOf = (id: string): Screening =>
    looks.find(({ callId }) => callId === id) ?? { action: 'block' }
  switch (actor) {
    case 'model':
    case 'conclusion':
      return hearModel(run, output as ModelOutput)
    case 'inputShields': {
      const isComplete = Array.from({ length: run.uncleared }, (_, i) =>
        looks.some(({ index }) => index === i),
      )
      const isBlocked = looks.some(isBlock) || isComplete.includes(false)
      const blocked = { uncleared: 0, numbered: run.numbered + 1 }
      return isBlocked
        ? end(run, 'BLOCKED', 'shield', blocked)
        : [{ ...run, uncleared: 0, place: 'screened' }]
    }
    case 'outputShields': {
      const problem = looks[0]?.outputProblem === undefined ? run.problem : looks[0].outputProblem
      const isBlocked = looks.some(isBlock)
      return isBlocked ? end(run, 'BLOCKED', 'shield') : [{ ...run, problem, held: false, place: 'answered' }]
    }
    case 'callShields': {
      const refused = { done: true, failed: true, perhaps: false, unchecked: false }
      const isRefused = ({ id, hosted }: Call): boolean =>
        verdictOf(id).action === 'block' || (hosted && verdictOf(id).action === 'redact')
      const look = (call: Call): Call =>
        call.unchecked && !call.done && isRefused(call)
          ? { ...call, ...refused }
          : { ...call, unchecked: false }
      return [{ ...run, calls: run.calls.map(look), place: 'dispatching' }]
    }
    case 'resultShields': {
      const look = (call: Call): Call =>
        call.unscreened
          ? { ...call, unscreened: false, failed: call.failed || verdictOf(call.id).action === 'block' }
          : call
      return [{ ...run, calls: run.calls.map(look), place: 'dispatching' }]
    }
    case 'callGuards':
    case 'resultGuards':
      return hearGuards(run, actor, (output as { findings: Finding[] }).findings)
    case 'retrieval':
      return [{ ...run, recalled: true, place: 'checkingLimits' }]
    case 'fitting':
      return [{ ...spend(run, (output as { usage: Usage | null }).usage), place: 'fitted' }]
    case 'backOff':
      if (now < run.backOffUntil)
        throw new Broken('backOff', `It is over at ${now}, not at ${run.backOffUntil}.`)
      return [{ ...run, place: 'requesting' }]
    default:
      return closeStarted(run)
  }
}

interface ModelOutput {
  response: Response
  calls: { id: string; needs: string }[]
  outputProblem?: string | null
}

/** An answer is a step: it is paid for before anything is decided about it. */
function hearModel(run: Run, { response, calls: needs, outputProblem = null }: ModelOutput): Run[] {
  const { text, refusal, toolCalls, usage } = response
  const { outputShields, callShields } = run.setup.features
  const ids = toolCalls.map(({ id }) => id)
  if (new Set(ids).size < ids.length) throw new Broken('ids', `Two of its calls are one: ${ids.join(', ')}.`)
  if (ids.some((id, i) => needs[i]?.id !== id))
    throw new Broken('ids', 'It does not say who has to act on each call.')
  const kind = classify(response)
  const isNumbered = kind !== 'empty'
  const calls = toolCalls.map(({ id, function: { name }, hosted }, i): Call => {
    const fresh = {
      started: false,
      done: false,
      failed: false,
      unscreened: false,
      perhaps: false,
      questions: null,
    }
    return {
      ...fresh,
      id,
      name,
      hosted: Boolean(hosted),
      unloaded: !hosted && isDeferred(run, name) && !run.loaded.includes(name),
      needs: needs[i]?.needs ?? 'nobody',
      unchecked: callShields === true,
    }
  })
  const heard = {
    ...spend(run, usage),
    steps: run.steps + 1,
    attempt: 1,
    rateLimits: 0,
    batch: run.numbered + 1,
    kind,
    calls,
    numbered: isNumbered ? run.numbered + 1 + calls.length : run.numbered,
    uncleared: isNumbered ? 0 : run.uncleared,
    problem: outputProblem,
  }
  if (outputShields && (text !== '' || (refusal ?? '') !== ''))
    return [{ ...heard, held: true, place: 'screeningOutput' }]
  return [{ ...heard, place: 'answered' }]
}

const isDeferred = ({ setup: { tools } }: Run, name: string): boolean =>
  Object.hasOwn(tools, name) && tools[name]?.deferred === true

const cuts = ['length', 'max_tokens', 'model_length', 'max_output_tokens']
const filters = [
  'content_filter',
  'content_filtered',
  'safety',
  'recitation',
  'blocklist',
  'prohibited_content',
  'spii',
]
filters.push('guardrail_intervened', 'sensitive')

/** What an answer is. Of finish reasons, a filter and a cut are believed: such calls do not run. */
function classify({ text, refusal, toolCalls, finishReason }: Response): string {
  const why = finishReason?.toLowerCase() ?? ''
  if (filters.includes(why)) return 'filtered'
  if (refusal?.trim() || why === 'refusal') return 'refusal'
  if (cuts.includes(why)) return toolCalls.length > 0 ? 'truncatedCalls' : 'truncated'
  if (toolCalls.length > 0) return 'calls'
  return text.trim() ? 'answer' : 'empty'
}

/** The guards of the agent's author say in the log what they find. */
function hearGuards(run: Run, actor: string, findings: Finding[]): Run[] {
  const verdict = findings.find(({ action }) => action === 'halt')
  if (verdict) return halt(run, verdict.onHalt, false)
  if (actor === 'resultGuards') return [{ ...run, place: 'batchOver' }]
  const blocks = findings.filter(({ action }) => action === 'block')
  const isBlocked = ({ id }: Call): boolean => blocks.some(({ callIds }) => callIds?.includes(id) ?? true)
  const block = (call: Call): Call =>
    isBlocked(call) && !call.done && !call.unloaded
      ? { ...call, done: true, failed: true, perhaps: false }
      : call
  const place = run.setup.features['callShields'] ? 'screeningCalls' : 'dispatching'
  return [{ ...run, calls: run.calls.map(block), place }]
}

/** An actor fails. A request may be made again; what else fails ends the run. */
export function fail(run: Run, actor: string, { error }: LoggedEvent, now: number): Run[] {
  const { kind, code, partialText } = error ?? {}
  const { retry } = run.setup.config
  const paid = spend(run, error?.usage)
  if (actor === 'conclusion') return [{ ...keepPartial(paid, partialText), place: 'stopping' }]
  if (actor !== 'model')
    return end(paid, 'ERROR', actor === 'fitting' && kind === 'context_overflow' ? kind : 'internal')
  if (kind !== undefined && (code === 'token_budget' || code === 'shared_budget'))
    return end(paid, 'BUDGET_EXCEEDED', findSpent(paid) ?? code)
  if (error?.usage && kind !== 'context_overflow' && findSpent(paid))
    return end(keepPartial(paid, partialText), 'BUDGET_EXCEEDED', findSpent(paid) ?? undefined)
  const isLimit = kind === 'rate_limit'
  const before = isLimit ? run.rateLimits : run.attempt - 1 - run.rateLimits
  const mayRetry = isLimit
    ? before + 1 < retry.rateLimitAttempts
    : (kind === 'transient' || kind === 'incomplete') && before + 1 < retry.maxAttempts
  if (!mayRetry || (error?.retryAfterMs ?? 0) > retry.maxRetryAfterMs) {
    const reasons: Record<string, string> = {
      context_overflow: 'context_overflow',
      incomplete: 'incomplete_response',
    }
    return end(
      keepPartial(paid, partialText),
      'ERROR',
      error?.budget === undefined ? (reasons[kind ?? ''] ?? 'provider_error') : 'shared_budget',
    )
  }
  const backOff =
    Math.min(retry.maxDelayMs, retry.baseDelayMs * 2 ** Math.min(before, 30)) * (error?.jitter ?? 1)
  const next = {
    ...paid,
    attempt: run.attempt + 1,
    rateLimits: run.rateLimits + (isLimit ? 1 : 0),
    backOffUntil: now + Math.round(error?.retryAfterMs ?? backOff),
  }
  return run.pausing ? rest(next, 'PAUSED', 'paused', now) : [{ ...next, place: 'backingOff' }]
}
