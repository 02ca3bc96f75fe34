import { getOrCreate } from '../core/base/values.js'
import { capAdvice } from '../../guards/call-caps.js'
import type { AgentContext } from '../../machines/agent/context.js'
import { findNextExpiry } from '../../machines/agent/due-times.js'
import { explainEnd } from '../../machines/agent/explain-end.js'
import { maskContext } from '../../machines/agent/mask-uncleared.js'
import { listAnswerableCalls } from '../../machines/agent/questions.js'
import { type PendingCall, isWorkState, isRestState, isActiveState } from '../../machines/agent/run-result.js'
import { formatWakeTime, systemClock } from '../core/base/clock.js'
import { formatCount, shorten } from '../core/format/format-words.js'
import { joinNames } from './format.js'
import type { RecordRow } from './record-rows.js'
import type { SessionFold } from './session-fold.js'
import { findWakeTime, formatGuardName, getOwnUsage } from './session-step.js'
import { toShownText } from './shown-values.js'

export type VerdictView = ReturnType<typeof createVerdict>

/**
 * Why a session stopped, and its totals, without inherited usage. `steps` are the answered steps in all runs, or in a
 * partial view those of its runs.
 */
export function createVerdict({
  now,
  rows,
  steps,
  cost,
}: Pick<SessionFold, 'now' | 'rows' | 'steps' | 'cost'>) {
  const context = now.session.run && maskContext(now.session.run.context)
  const usage = getOwnUsage(now)
  return {
    /** Of the latest run. Null before the first. */
    state: context === null ? null : (context.state ?? 'RUNNING'),
    reason: context?.reason ?? null,
    /** Why the run stopped and which key allows more, or why it waits. Empty before the first run. */
    text: context === null ? '' : toShownText(formatVerdict(context, rows), 1_000),
    /** The first line of a completed run's answer, as plain text. */
    answer: context?.state === 'COMPLETED' ? toPlainLine(toShownText(context.output)) : '',
    seq: findDecision(rows),
    inputTokens: usage.inputTokens,
    cachedTokens: usage.cachedInputTokens,
    cost,
    steps,
  }
}

function formatVerdict(context: AgentContext, rows: readonly RecordRow[]): string {
  const { state, reason, verdict, speaker } = context
  if (isActiveState(state)) return formatWork(context)
  if (state === 'WAITING_FOR_INPUT') return formatWait(context)
  const wakeAt = findWakeTime(context)
  if (wakeAt !== null) return formatSleep(wakeAt, context)
  const isExpired = reason === 'approval_expired'
  if (state === 'PAUSED' && verdict === null && context.error === null)
    return `It was paused ${isExpired ? 'because a question expired' : 'on request'} and continues when it is resumed.`
  if (state === 'COMPLETED') {
    const words = completedWords[reason ?? ''] ?? 'The run completed.'
    // The conversation was handed to another agent.
    return speaker === null ? words : words.replace(/^The model/, `The agent ${shorten(speaker, 60)}`)
  }
  if (state === 'CANCELLED') return `It was cancelled${isExpired ? ' because a question expired' : ''}.`
  const why = explainEnd(context, reason ?? 'internal').message
  if (verdict !== null) return `Stopped by ${formatGuardName(verdict)}. ${why}${formatToll(findToll(rows))}`
  if (reason === 'provider_error') {
    const { attempt } = context
    return `The request to the model failed${attempt > 1 ? ` ${attempt} times, most recently with this error` : ''}: ${why}`
  }
  const toll = state === 'MAX_STEPS' ? findToll(rows) : null
  if (toll === null) return why
  // More steps would not help.
  const fact = Object.values(capAdvice).reduce((text, advice) => text.replace(advice, ''), why)
  return `The run repeated itself.${formatToll(toll)} ${fact}`
}

function formatSleep(wakeAt: number, { config, reason, error }: AgentContext): string {
  const date = formatWakeTime(wakeAt)
  const waker = config.interactive ? 'Its process' : 'A waker'
  const isPoor = reason === 'shared_budget' && error?.budget !== undefined
  const rests = isPoor
    ? `Waiting for the shared budget '${error.budget}' until ${date}`
    : `It sleeps until ${date}`
  const text = `${rests}. ${waker} will wake it. You can wake it earlier.`
  return isPoor ? `${text} ${error.message}` : text
}

const completedWords: Record<string, string> = {
  end_turn: 'The model ended its turn with an answer.',
  max_tokens: 'The answer was truncated at the output limit. To allow more, raise sampling.maxTokens.',
  refusal: 'The model refused to answer.',
  content_filter: 'The provider filtered the answer.',
}

const answerLength = 200

/** Headings count only if there is nothing else. A lone bracket, as in formatted JSON, includes the next lines. */
export function toPlainLine(text: string): string {
  const beginning = text.slice(0, answerLength * 10).trim()
  const lines = beginning.split('\n').filter((line) => /[\p{L}\p{N}]/u.test(line))
  const firstLine = lines.find((line) => !line.startsWith('#')) ?? lines[0] ?? ''
  const line = /^[[{]\s*\n/.test(beginning) ? beginning : firstLine
  return shorten(
    line
      .replace(/^\s*(?:#{1,6}|>|[-*+])\s+/, '')
      .replaceAll(/\*\*|`/g, '')
      .replaceAll(/\*(?=\S)([^*]*)\*/g, '$1')
      .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1'),
    answerLength,
  )
}

function formatWork({ state, calls, steps }: AgentContext): string {
  const running = calls
    .filter(({ started, result }) => started && !result)
    .map(({ name }) => shorten(name, 40))
  if (state === 'WAITING_FOR_TOOL' && running.length > 0) return `Running ${joinNames(running)}.`
  return `Working on step ${steps + 1}.`
}

function formatWait(context: AgentContext): string {
  const calls = listAnswerableCalls(context)
  const names = (needs: PendingCall['needs']): string =>
    joinNames(calls.filter((one) => one.needs === needs).map(({ name }) => shorten(name, 40)))
  const waits = [
    ...(names('approval') === '' ? [] : [`you to approve ${names('approval')}`]),
    ...(names('client') === '' ? [] : [`the output of ${names('client')}`]),
    ...(names('elicitation') === '' ? [] : [`your answer to ${names('elicitation')}`]),
  ]
  const expiresAt = findNextExpiry(context)
  const what = waits.join(' and for ') || 'your message'
  if (expiresAt === null) return `Waiting for ${what}.`
  const time = formatWakeTime(expiresAt)
  return expiresAt > systemClock.now()
    ? `Waiting for ${what} until ${time}.`
    : `Waited for ${what}. The question expired at ${time}.`
}

interface Toll {
  name: string
  ran: number
  refused: number
}

/** Of the latest run. Null if no call was refused. */
function findToll(rows: readonly RecordRow[]): Toll | null {
  const run = rows.at(-1)?.run
  const tolls = new Map<string, Toll>()
  for (const { name, status } of rows.filter((row) => row.run === run).flatMap(({ calls }) => calls)) {
    const toll = getOrCreate(tolls, name, () => ({ name, ran: 0, refused: 0 }))
    if (status === 'blocked') toll.refused += 1
    else if (status !== 'not_executed') toll.ran += 1
  }
  const [worst] = [...tolls.values()].toSorted((a, b) => b.refused - a.refused)
  return worst && worst.refused > 0 ? worst : null
}

function formatToll(toll: Toll | null): string {
  if (toll === null) return ''
  const { name, ran, refused } = toll
  return ` ${formatCount(ran, `call to ${name}`, `calls to ${name}`)} ran and ${formatCount(refused)} ${refused === 1 ? 'was' : 'were'} refused.`
}

/** For a halt, this is not the conclusion that follows it. */
function findDecision(rows: readonly RecordRow[]): number {
  const last = rows.at(-1)
  if (last === undefined) return 0
  const refused = rows.find(({ run, flags }) => run === last.run && flags.includes('block'))
  if (last.state === 'MAX_STEPS' && refused) return refused.seq
  const isRest = last.state !== '' && !isWorkState(last.state as never)
  if (!isRest) return last.seq
  const halt = rows.findLast(({ run, flags }) => run === last.run && flags.includes('halt'))
  const hasRestedSince = rows.some(
    ({ seq, state }) => halt !== undefined && seq > halt.seq && seq < last.seq && isRestState(state as never),
  )
  if (halt && !hasRestedSince && (last.state === 'PAUSED' || last.state === 'ERROR')) return halt.seq
  const before = rows.findLast(({ state, run }) => state !== last.state || run !== last.run)
  return (before?.seq ?? 0) + 1
}
