import { sumCosts } from './costs.js'
import type { Bar, RecordRow, SessionView } from './protocol.js'
import { isFailed, readComparison, readTerm, splitQuery } from './session-query.js'

/** A request to the model with its retries, up to the last result of its calls. */
export type RunStep = ReturnType<typeof createStep>

/** A record belongs to the step that was active when it was written. `now` ends the work that is still active. */
export function listRunSteps(
  { rows, bars }: Pick<SessionView, 'rows' | 'bars'>,
  now = rows.at(-1)?.at ?? 0,
): RunStep[] {
  const spans: { run: number; step: number; from: number; to: number }[] = []
  for (const [place, row] of rows.entries()) {
    const before = rows[place - 1]
    const step = Math.max(1, before?.run === row.run ? before.step : row.step)
    const last = spans.at(-1)
    // Records before the first run belong to its first step.
    if (last && (last.run === row.run || last.run === 0) && (last.step === step || last.run === 0)) {
      last.to = place
      last.run = row.run
      // A fork starts at a later step.
      last.step = step
    } else spans.push({ run: row.run, step, from: place, to: place })
  }
  const [last, active] = [rows.at(-1), spans.at(-1)]
  const asks = bars.some(({ to, lane, status }) => to === null && status === 'running' && isAsking(lane))
  if (last && active && asks && last.run === active.run && last.step > active.step)
    spans.push({ run: last.run, step: last.step, from: rows.length, to: rows.length - 1 })
  const places = new Map(rows.map(({ seq }, place) => [seq, place]))
  const barsByStep = groupBars(bars, spans, places, rows.length)
  return spans.map((span, index) =>
    createStep(span, rows, barsByStep[index] ?? [], index === spans.length - 1 ? now : 0),
  )
}

const isAsking = (lane: Bar['lane']): boolean => lane === 'model' || lane === 'memory' || lane === 'shields'

function groupBars(
  bars: readonly Bar[],
  spans: readonly { from: number; to: number }[],
  places: ReadonlyMap<number, number>,
  count: number,
): Bar[][] {
  const stepOf = new Int32Array(count)
  for (const [index, { from, to }] of spans.entries()) stepOf.fill(index, from, to + 1)
  const inProgress = (spans.at(-1)?.from ?? 0) === count ? spans.length - 1 : -1
  const grouped: Bar[][] = spans.map(() => [])
  for (const bar of bars) {
    if (bar.to === null && inProgress !== -1) {
      grouped[inProgress]?.push(bar)
      continue
    }
    const end = bar.toSeq === null ? count - 1 : (places.get(bar.toSeq) ?? count - 1)
    // A wait that a new run ends belongs to the step that waited.
    const place = bar.lane === 'waits' ? (places.get(bar.fromSeq) ?? end) : end
    grouped[stepOf[place] ?? 0]?.push(bar)
  }
  return grouped
}

const handedWords = 'handed to '

function createStep(
  span: { run: number; step: number; from: number; to: number },
  rows: readonly RecordRow[],
  bars: readonly Bar[],
  until: number,
) {
  const own = rows.slice(span.from, span.to + 1)
  const [first, last] = [own[0], own.at(-1)]
  const before = rows[span.from - 1]
  const answer = own.findIndex(({ label }) => label.startsWith('answer'))
  const settled = own.findLastIndex((row) => row.calls.length > 0)
  const calls = own.flatMap((row) => row.calls)
  const flags = [...new Set(own.flatMap((row) => row.flags))]
  const now = Math.max(until, last?.at ?? 0)
  const sum = (lanes: readonly Bar['lane'][]): number => measureUnion(bars, lanes, now)
  const children = bars.flatMap(({ label, sessionId }) =>
    sessionId === undefined ? [] : [{ label, sessionId }],
  )
  const open = bars.flatMap(({ lane, label, to }) =>
    to === null && (lane === 'tools' || lane === 'children' || lane === 'waits' || isAsking(lane))
      ? [label]
      : [],
  )
  const over = open.length > 0 ? -1 : Math.max(answer, settled)
  const end = rows.length - 1
  return {
    ...span,
    /** Record indexes, `to` inclusive. */
    from: Math.min(span.from, end),
    to: Math.min(Math.max(span.to, span.from), end),
    /** The last result of the step's calls, or else the answer, or else the latest record. */
    place: over === -1 ? Math.max(0, Math.min(span.to, end)) : span.from + over,
    /** The milliseconds spent on requests, on calls and on waiting, and the total. */
    modelMs: sum(['model']),
    toolMs: sum(['tools', 'children']),
    waitMs: sum(['waits']),
    ms: Math.max(0, now - ((before?.run === span.run ? before.at : first?.at) ?? now)),
    tokens: Math.max(0, (last?.tokens ?? 0) - (before?.tokens ?? 0)),
    cost: sumCosts(own.map(({ paid }) => paid)),
    calls,
    open,
    children,
    /** The agent that received the conversation in this step. */
    handedTo:
      own.findLast(({ label }) => label.startsWith(handedWords))?.label.slice(handedWords.length) ?? null,
    flags,
    isAnswered: answer !== -1,
    hasFailed: calls.some(isFailed) || flags.includes('error'),
    label: own[answer]?.label ?? last?.label ?? '',
    words: [...own.map(({ label }) => label), ...calls.map(({ name }) => name), ...flags]
      .join('\n')
      .toLowerCase(),
    states: [...new Set(own.flatMap((row) => [...row.to, row.state]))],
  }
}

/** The models of the records, and others, as text. */
export function listModels(rows: readonly RecordRow[], others: readonly string[] = []): string {
  const names = rows.flatMap(({ spent }) => (spent?.by === 'model' ? spent.name : []))
  return [...new Set([...others, ...names])].filter(Boolean).join(', ')
}

/** The time covered by bars of these lanes, counting overlaps once. */
export function measureUnion(bars: readonly Bar[], lanes: readonly Bar['lane'][], now: number): number {
  const spans = bars
    .filter(({ lane }) => lanes.includes(lane))
    .map(({ from, to }) => [from, to ?? Math.max(from, now)] as const)
    .toSorted(([a], [b]) => a - b)
  let covered = 0
  let end = -Infinity
  for (const [from, to] of spans) {
    covered += Math.max(0, to - Math.max(from, end))
    end = Math.max(end, to)
  }
  return covered
}

export type TimeShares = ReturnType<typeof shareTime>

/** Each moment counts once. `other` is the loop itself, shields, memory, and time without a process. */
export function shareTime({ rows, bars }: Pick<SessionView, 'rows' | 'bars'>, now = rows.at(-1)?.at ?? 0) {
  const [first, last] = [rows[0]?.at ?? 0, now]
  const clipped = bars.flatMap((bar) => {
    const [from, to] = [Math.max(first, bar.from), Math.min(last, bar.to ?? last)]
    return from < to ? [{ ...bar, from, to }] : []
  })
  const total = Math.max(0, last - first)
  const model = measureUnion(clipped, ['model'], last)
  const called = measureUnion(clipped, ['model', 'tools'], last)
  const work = measureUnion(clipped, ['model', 'tools', 'children'], last)
  const known = measureUnion(clipped, ['model', 'tools', 'children', 'waits'], last)
  return {
    total,
    model,
    tools: called - model,
    'sub-agents': work - called,
    waits: known - work,
    other: total - known,
  }
}

/** In whole percent, which add up to 100 unless the total is 0. */
export function toPercents({
  total,
  ...parts
}: TimeShares): Record<Exclude<keyof TimeShares, 'total'>, number> {
  const shares = Object.entries(parts).map(([name, ms]) => {
    const exact = total > 0 ? (ms / total) * 100 : 0
    return { name, whole: Math.floor(exact), rest: exact - Math.floor(exact) }
  })
  const missing = total > 0 ? 100 - shares.reduce((sum, { whole }) => sum + whole, 0) : 0
  const raised = new Set(shares.toSorted((a, b) => b.rest - a.rest).slice(0, missing))
  const entries = shares.map((share) => [share.name, share.whole + (raised.has(share) ? 1 : 0)])
  return Object.fromEntries(entries) as ReturnType<typeof toPercents>
}

/** A step, or several merged steps. */
export type StepLine = readonly [RunStep, ...RunStep[]]

const mostUnmerged = 3
const fewSteps = 12

/** Merges consecutive steps that look alike into one line, unless the reader has opened the line. */
export function mergeSteps(steps: readonly RunStep[], opened: ReadonlySet<string>): StepLine[] {
  const groups: [RunStep, ...RunStep[]][] = []
  let alike = ''
  for (const step of steps) {
    const look = describeLook(step)
    if (groups.length > 0 && look === alike) groups.at(-1)?.push(step)
    else groups.push([step])
    alike = look
  }
  const isLong = steps.length > fewSteps
  return groups.flatMap((group): StepLine[] =>
    isLong && group.length > mostUnmerged && !opened.has(toStepKey(group[0]))
      ? [group]
      : group.map((step) => [step]),
  )
}

export const toStepKey = ({ run, step }: Pick<RunStep, 'run' | 'step'>): string => `${run}.${step}`

function describeLook({ run, calls, flags, open, children }: RunStep): string {
  const names = calls.map(({ name, status }) => `${name} ${status}`)
  return JSON.stringify([run, names, flags, open, children.length])
}

/** Matches steps by a filter such as `tool:pay error >1s cost>0.01`. */
export function createStepFilter(words: string): (step: RunStep) => boolean {
  const tests = splitQuery(words.toLowerCase()).map(readFilterWord)
  return (step) => tests.every((test) => test(step))
}

function readFilterWord(word: string): (step: RunStep) => boolean {
  const { name, value = '' } = readTerm(word) ?? {}
  if (name === 'tool')
    return ({ calls, open }) => [...calls.map((call) => call.name), ...open].some((one) => has(one, value))
  if (name === 'failed')
    return ({ calls }) => calls.some((call) => isFailed(call) && has(call.name, value.replace(/\*$/, '')))
  if (name === 'state') return ({ states }) => states.some((state) => has(state, value))
  const comparison = readComparison(word)
  if (comparison !== null && comparison.measure !== 'steps') {
    const { measure, fits } = comparison
    if (measure === 'cost') return ({ cost }) => fits(cost.isWhole ? cost.usd : null)
    return (step) => fits(measure === 'duration' ? step.ms : step.tokens)
  }
  if (word === 'error') return ({ hasFailed }) => hasFailed
  const plain = word.replaceAll('"', '')
  return (step) => step.words.includes(plain)
}

const has = (name: string, part: string): boolean => name.toLowerCase().includes(part)
