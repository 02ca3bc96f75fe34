import { Broken, type Rule } from './rules.js'
import {
  type Call,
  type Question,
  type Run,
  type Usage,
  ends,
  findSpent,
  hear,
  rests,
  spend,
  withCall,
} from './run.js'
import { end, halt, isLate, isMissing, isPaused, refuse, rest, settle, wake } from './settle.js'

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
interface Response {
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
  tools?: Run['setup']['tools']
  usage?: Usage | null
  partial?: { text: string; usage: Usage | null }
  result?: { status: string; child?: { state: string; code: string | null } }
  isError?: boolean
  error?: Record<'kind' | 'code' | 'partialText', string> &
    Record<'retryAfterMs' | 'jitter', number | null> & { usage: Usage | null }
  output?: unknown
}

/** Who reports, where it has been asked, and which rule that is of. */
const actors: Record<string, [place: string, rule: Rule]> = {
  model: ['requesting', 'request'],
  conclusion: ['concluding', 'request'],
  inputShields: ['screeningInput', 'screening'],
  outputShields: ['screeningOutput', 'screening'],
  callShields: ['screeningCalls', 'screening'],
  resultShields: ['screeningResults', 'screening'],
  retrieval: ['retrieving', 'work'],
  fitting: ['fittingContext', 'work'],
  callGuards: ['consultingOnCalls', 'work'],
  resultGuards: ['consultingOnResults', 'work'],
  backOff: ['backingOff', 'work'],
  tools: ['executing', 'work'],
}

const atWork = ['dispatching', 'executing', 'screeningCalls', 'screeningResults', 'consultingOnResults']
const isBlock = ({ action, content }: Screening): boolean =>
  action === 'block' || typeof action !== 'string' || typeof content !== 'string'

/** The runs that are possible after an event; none of them is where it cannot come. */
export function take(run: Run, event: LoggedEvent): Run[] {
  const now = event.now ?? 0
  const [, outcome, actor = ''] = /^xstate\.(done|error)\.actor\.(.+)$/.exec(event.type) ?? []
  if (ends.includes(run.place))
    throw new Broken('end', `The run has ended in ${run.place}, and ${event.type} comes.`)
  checkWithheld(run, event)
  if (outcome === undefined) return tell(run, event, now).flatMap((next) => settle(next, now))
  const [place, rule] = actors[actor] ?? ['', 'known']
  if (run.place !== place) throw new Broken(rule, `${event.type} comes while the run stands in ${run.place}.`)
  const next =
    outcome === 'done' || actor === 'tools' ? hearActor(run, actor, event, now) : fail(run, actor, event, now)
  return next.flatMap((one) => settle(one, now))
}

/** Logs of the first versions have no marks: `marks` is a feature that the reader of a log switches on. */
function checkWithheld(
  { setup: { features } }: Run,
  { type, withheld, output, ...event }: LoggedEvent,
): void {
  const { inputShields, outputShields, callShields, resultShields } = features
  const isAnswer = /done\.actor\.(model|conclusion)$/.test(type)
  const hasCalls = isAnswer && (output as { response: Response }).response.toolCalls.length > 0
  const isDue =
    (isAnswer && (outputShields || (callShields && hasCalls))) ||
    (type === 'APPROVE' && callShields && event.arguments !== undefined) ||
    (['TOOL_RESULT', 'TOOL_OUTPUT'].includes(type) && resultShields) ||
    (type === 'REJECT' && (inputShields || resultShields) && event.why !== '') ||
    (['STEER', 'REPLY'].includes(type) && inputShields)
  if (isDue && !withheld && features['marks']) throw new Broken('withheld', `${type} is not marked.`)
}

/** What people and programs say, and what happens to the run as a whole. */
function tell(run: Run, event: LoggedEvent, now: number): Run[] {
  const { type, partial } = event
  const cut = (): Run => keepPartial(spend(run, partial?.usage), partial?.text)
  const steered = { ...run, steering: run.steering + 1 }
  const unpaused = {
    ...run,
    pausing: false,
    calls: run.calls.map((c) => (isPaused(c) ? { ...c, needs: 'nobody' } : c)),
  }
  const goOn = (paused: Run, asks: number): Run[] => {
    if (run.calls.some(isPaused)) return [{ ...wake(paused, 'dispatching', now), calls: unpaused.calls }]
    return [{ ...wake(paused, 'checkingLimits', now), pausing: false, numbered: run.numbered + asks }]
  }
  switch (type) {
    case 'CANCEL':
      return end(cut(), 'CANCELLED', 'cancelled')
    case 'STORE_FAILED':
      return end(cut(), 'ERROR', 'store_error')
    case 'DEADLINE':
      if (!isLate(run, now))
        throw new Broken('deadline', `It passes at ${now}, and the run has time until ${run.deadline}.`)
      return end(cut(), 'TIMED_OUT', 'timeout')
    case 'LEFT': {
      const left = ({ id }: Call): boolean => event.unbegun?.includes(id) === true
      return [
        {
          ...spend(run, event.usage),
          calls: run.calls.map((c) => (left(c) && !c.done ? { ...c, started: false } : c)),
        },
      ]
    }
    case 'RESUMED':
      return resumeElsewhere(run, event, now)
    case 'PAUSE':
      if (run.place === 'backingOff') return rest(run, 'PAUSED', 'paused', now)
      return [run.place === 'PAUSED' ? run : { ...run, pausing: true }]
    case 'RESUME': {
      // After the answer of a run that a guard has stopped, a message of the loop’s own asks the model to go on.
      if (run.place === 'PAUSED') return run.stop === null ? goOn(run, 0) : [...goOn(run, 1), ...goOn(run, 0)]
      if (!run.pausing) throw new Broken('control', `The run is resumed in ${run.place}, and does not pause.`)
      return [unpaused]
    }
    case 'STEER':
      if (run.place === 'message') return [wake(steered, 'checkingLimits', now)]
      return run.place === 'PAUSED' ? goOn(steered, 0) : [steered]
    case 'REPLY':
      if (run.place !== 'message')
        throw new Broken('control', `A reply comes while the run stands in ${run.place}.`)
      return [hear(wake(run, '', now), event.messages?.length ?? 0)]
    case 'APPROVE':
    case 'REJECT':
    case 'TOOL_OUTPUT':
      return answer(run, event, now)
    case 'TOOL_RESULT':
    case 'CHILD_USAGE':
    case 'CHILD_RESTS':
      return reportCall(run, event)
    case 'BATCH_DONE':
      if (run.place !== 'executing')
        throw new Broken('work', `A batch is done while the run stands in ${run.place}.`)
      return closeStarted(run)
    default:
      throw new Broken('known', `There is no event ${type}.`)
  }
}

const keepPartial = (run: Run, text = ''): Run =>
  text === '' ? run : { ...run, numbered: run.numbered + 1, uncleared: 0 }

function closeStarted(run: Run): Run[] {
  const calls = run.calls.map((c) =>
    c.started && !c.done ? { ...c, done: true, failed: true, perhaps: false } : c,
  )
  return [{ ...run, place: 'dispatching', calls }]
}

/** A call that ran as the process died runs again only where its tool may run twice. */
function resumeElsewhere(run: Run, { tools: after }: LoggedEvent, now: number): Run[] {
  // Somebody has paused the run before the process that takes it up has begun.
  if (run.place === 'PAUSED') return [run]
  if (rests.includes(run.place)) throw new Broken('resumed', `The run rests in ${run.place}.`)
  if (isLate(run, now)) return end(run, 'TIMED_OUT', 'timeout')
  const { tools, config } = run.setup
  const isSafe = (by: Run['setup']['tools'], name: string): boolean =>
    Object.hasOwn(by, name) && [by[name]?.readOnly, by[name]?.idempotent, by[name]?.delegate].includes(true)
  const isInDoubt = ({ name, started, done }: Call): boolean =>
    started && !done && Object.hasOwn(tools, name) && !(isSafe(tools, name) && isSafe(after ?? tools, name))
  const asks = config.toolCalls.onInterrupted === 'approval'
  const fate = asks ? { started: false, needs: 'approval' } : { done: true, failed: true, perhaps: false }
  const isBatch = atWork.includes(run.place)
  const calls = isBatch ? run.calls.map((call) => (isInDoubt(call) ? { ...call, ...fate } : call)) : run.calls
  const setup = { ...run.setup, tools: after ?? tools }
  return [{ ...run, setup, calls, place: run.place === 'executing' ? 'dispatching' : run.place }]
}

/** A person approves or rejects a call, or a client returns the result of its own. */
function answer(run: Run, event: LoggedEvent, now: number): Run[] {
  const { type, callId = '', messageId } = event
  const who = type === 'TOOL_OUTPUT' ? 'client' : 'approval'
  const call = run.calls.find(({ id }) => id === callId)
  const above = call ?? run.calls.find((one) => isMissing(one, who) && callId.startsWith(`${one.id}/`))
  const asked = call ? undefined : above?.questions?.find((one) => `${above.id}/${one.callId}` === callId)
  if (call?.done || asked?.answer)
    throw new Broken('oneAnswer', `${callId} has its answer, and another one comes.`)
  if (!above || !(call ? call.needs === who && !call.unchecked : asked?.needs === who))
    throw new Broken('question', `${type} answers ${callId}, which asks for none.`)
  const asking = `m${run.batch}${asked?.messageId === undefined ? '' : `/${asked.messageId}`}`
  if (messageId !== undefined && messageId !== asking)
    throw new Broken(
      'question',
      `${type} is for a call of ${messageId}, and ${asking} is the message that asks.`,
    )
  const open = run.calls.filter((one) => isMissing(one, who))
  const missing = open.filter((one) => one !== above)
  const isLast = missing.length === 0 && (call !== undefined || countOpen(above, who) === 1)
  const next = {
    ...run,
    calls: run.calls.map((one) => (one === above ? toAnswered(run, one, event, asked) : one)),
  }
  if (run.place === 'screeningResults' || atWork.includes(run.place)) return [next]
  if (who === 'client' && run.place === 'approval') return [next]
  if (isLast) return [wake(next, 'dispatching', now)]
  const others = missing.map(({ id }) => id)
  const isOnlyOther = others.length > 0 && (call !== undefined || countOpen(above, who) === 1)
  const left = isOnlyOther ? refuse(next, ({ id }) => others.includes(id), 'dispatching') : []
  return [next, ...left.map((one) => wake(one, 'dispatching', now))]
}

const countOpen = ({ questions }: Call, who: string): number =>
  (questions ?? []).filter((one) => !one.answer && one.needs === who).length

function toAnswered({ setup: { features } }: Run, call: Call, event: LoggedEvent, asked?: Question): Call {
  if (asked) {
    const questions = (call.questions ?? []).map((one) =>
      one === asked ? { ...one, answer: event.type } : one,
    )
    return { ...call, questions, needs: questions.every((one) => one.answer) ? 'nobody' : 'child' }
  }
  const live = { ...call, perhaps: false }
  const isEdited = event.arguments !== undefined
  if (event.type === 'TOOL_OUTPUT')
    return {
      ...live,
      done: true,
      failed: event.isError === true,
      unscreened: features['resultShields'] === true,
    }
  if (event.type === 'REJECT')
    return { ...live, done: true, failed: true, unscreened: event.withheld === true }
  const unchecked = isEdited && features['callShields'] === true && event.withheld === true
  return { ...live, needs: 'nobody', unchecked: call.unchecked || unchecked }
}

/** A call that runs has a result, or its sub-agent has spent something or rests. */
function reportCall(run: Run, event: LoggedEvent): Run[] {
  const { type, callId = '', result } = event
  const call = run.calls.find(({ id }) => id === callId)
  if (call?.done) throw new Broken('oneAnswer', `Call ${callId} has its result, and ${type} comes.`)
  if (call && !call.started && call.needs !== 'nobody')
    throw new Broken('approval', `Call ${callId} waits for its ${call.needs}, and ${type} comes.`)
  if (!call?.started || run.place !== 'executing')
    throw new Broken('callStart', `${type} comes for call ${callId}, which does not run.`)
  const paid = spend(run, type === 'CHILD_RESTS' ? null : event.usage)
  const isSpent = paid !== run
  if (type === 'CHILD_USAGE') return isSpent ? exceedOr(paid, [paid]) : [paid]
  const ended = {
    done: true,
    failed: result?.status !== 'ok',
    unscreened: run.setup.features['resultShields'] === true,
  }
  const resting = { started: false, needs: 'child', questions: event.questions ?? [] }
  const next = withCall(paid, callId, { perhaps: false, ...(type === 'TOOL_RESULT' ? ended : resting) })
  const isHopeless = ['provider_quota', 'provider_config'].includes(result?.child?.code ?? '')
  if (
    isHopeless &&
    result?.child?.state === 'ERROR' &&
    run.setup.config.guardrails['terminalDelegation'] !== null
  )
    return [{ ...next, place: 'doomed' }]
  const isRunning = ({ started, done }: Call): boolean => started && !done
  const onwards = next.calls.some(isRunning) ? [next, ...refuse(next, isRunning, 'dispatching')] : []
  const after = onwards.length > 0 ? onwards : [{ ...next, place: 'dispatching' }]
  return isSpent ? exceedOr(paid, after) : after
}

const exceedOr = (run: Run, onwards: Run[]): Run[] => {
  const reason = findSpent(run)
  return reason === null ? onwards : end(run, 'BUDGET_EXCEEDED', reason)
}

/** What an actor of the loop brings. */
function hearActor(run: Run, actor: string, { output }: LoggedEvent, now: number): Run[] {
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
      needs: needs[i]?.needs ?? 'nobody',
      unchecked: callShields === true,
    }
  })
  const heard = {
    ...spend(run, usage),
    ...{ steps: run.steps + 1, attempt: 1, rateLimits: 0, batch: run.numbered + 1, kind, calls },
    numbered: isNumbered ? run.numbered + 1 + calls.length : run.numbered,
    uncleared: isNumbered ? 0 : run.uncleared,
    problem: outputProblem,
  }
  if (outputShields && (text !== '' || (refusal ?? '') !== ''))
    return [{ ...heard, held: true, place: 'screeningOutput' }]
  return [{ ...heard, place: 'answered' }]
}

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
    isBlocked(call) && !call.done ? { ...call, done: true, failed: true, perhaps: false } : call
  const place = run.setup.features['callShields'] ? 'screeningCalls' : 'dispatching'
  return [{ ...run, calls: run.calls.map(block), place }]
}

/** An actor fails. A request may be made again; what else fails ends the run. */
function fail(run: Run, actor: string, { error }: LoggedEvent, now: number): Run[] {
  const { kind, code, partialText } = error ?? {}
  const { retry } = run.setup.config
  const paid = spend(run, error?.usage)
  if (actor === 'conclusion') return [{ ...keepPartial(paid, partialText), place: 'stopping' }]
  if (actor !== 'model')
    return end(paid, 'ERROR', actor === 'fitting' && kind === 'context_overflow' ? kind : 'internal')
  if (kind !== undefined && code === 'token_budget')
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
    return end(keepPartial(paid, partialText), 'ERROR', reasons[kind ?? ''] ?? 'provider_error')
  }
  const backOff =
    Math.min(retry.maxDelayMs, retry.baseDelayMs * 2 ** Math.min(before, 30)) * (error?.jitter ?? 1)
  const next = {
    ...{ ...paid, attempt: run.attempt + 1, rateLimits: run.rateLimits + (isLimit ? 1 : 0) },
    backOffUntil: now + Math.round(error?.retryAfterMs ?? backOff),
  }
  return run.pausing ? rest(next, 'PAUSED', 'paused', now) : [{ ...next, place: 'backingOff' }]
}
