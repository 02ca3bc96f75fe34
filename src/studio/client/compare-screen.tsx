import { diffArrays } from 'diff'
import { useMemo } from 'preact/hooks'
import { formatCount, formatDuration, formatMoney } from '../../core/format/format-words.js'
import { formatChange, formatCost, formatCostChange, sumCosts } from '../costs.js'
import type { CompareStep, CompareView } from '../compare-sessions.js'
import type { ChartView, CompareChange } from '../protocol.js'
import { Sheet } from './chart-pane.js'
import type { Source } from './data-source.js'
import { paths } from '../routes.js'
import { formatJson, formatShort, sessionAddress } from '../format.js'
import { CodeText, LongText, Table } from './long-text.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { Said } from './message.js'
import { useTimeout } from './page.js'
import type { Mark } from './picture.js'
import { StatePill } from './run-head.js'
import { drawVisitedChart } from '../visited-chart.js'
import { listStates } from '../timeline-layout.js'
import { listModels, measureUnion } from '../run-steps.js'
import { lastFork } from './what-if.js'

const atWork = new Set(['RUNNING', 'WAITING_FOR_TOOL'])
const followMs = 700

export function CompareScreen({ source, a, b }: { source: Source; a: string; b: string }) {
  const chart = useLoaded('chart', () => source.chart())
  const both = useLoaded(`compare ${a} ${b}`, () => source.send(paths.compare(a, b)))
  // A new fork may still be running. Reload until it settles.
  const isAtWork = [both.value?.a, both.value?.b].some((view) => view && atWork.has(view.verdict.state ?? ''))
  useTimeout(isAtWork ? followMs : null, both.reload, [isAtWork, both.value])
  if (both.error !== null && !both.value) return <Trouble error={both.error} onRetry={both.reload} hasLink />
  if (!both.value || !chart.value) return <Loading what="Comparing" />
  const view = both.value
  const folded = view.steps.findIndex(({ isSame }) => !isSame)
  const common = folded === -1 ? view.steps.length : folded
  const differing = view.steps.slice(common)
  const names = namesByFork[view.fork ?? 'none']
  return (
    <main class="compare">
      <h1>Compare</h1>
      <div class="compare-heads">
        <SessionHead side="a" name={names[0]} view={view} />
        <SessionHead side="b" name={names[1]} view={view} />
      </div>
      {view.change && <Change change={view.change} names={names} />}
      <Outcome view={view} names={names} isAtWork={isAtWork} />
      <p class="common">
        {view.commonRecords === 0
          ? 'No shared records.'
          : `${formatCount(view.commonRecords, 'shared record')}${view.change ? `; the ${view.change.kind} changed` : ''}.`}
      </p>
      {common > 0 && (
        <details class="alike">
          <summary>{formatCount(common, 'identical step')}</summary>
          {view.steps.slice(0, common).map((step) => (
            <Pair key={step.step} step={step} view={view} isFirst={false} />
          ))}
        </details>
      )}
      {differing.length === 0 && <p class="empty">All steps are the same.</p>}
      {differing.map((step, index) => (
        <Pair key={step.step} step={step} view={view} isFirst={index === 0} />
      ))}
      <section class="compare-chart">
        <h2>On the chart</h2>
        <p class="legend">
          <span class="key only-a">{names[0]} only</span> <span class="key only-b">{names[1]} only</span>{' '}
          <span class="key both">both</span>
        </p>
        <Ways chart={chart.value} view={view} />
      </section>
    </main>
  )
}

type Names = readonly [a: string, b: string]

const namesByFork: Record<'a' | 'b' | 'none', Names> = {
  a: ['Fork', 'Original'],
  b: ['Original', 'Fork'],
  none: ['A', 'B'],
}

function SessionHead({ side, name, view }: { side: 'a' | 'b'; name: string; view: CompareView }) {
  const { session } = view[side]
  return (
    <header class={`compare-head letter-${side}`}>
      <span class="letter">{name}</span>
      <div>
        <a class="session-title" href={sessionAddress(session.id)}>
          {session.title || session.name || session.id}
        </a>
        <p>
          <StatePill session={session} />
          {side === view.fork && <strong>from record {session.forkedFrom?.seq}</strong>}
          <span>{session.id}</span>
        </p>
      </div>
    </header>
  )
}

function Change({ change: { kind, name, a, b }, names }: { change: CompareChange; names: Names }) {
  return (
    <section class="change" aria-label="Change">
      <h2>
        Changed {kind}
        {name !== null && <code>{name}</code>}
      </h2>
      <WordDiff a={formatJson(a)} b={formatJson(b)} names={names} />
    </section>
  )
}

function Outcome({ view, names, isAtWork }: { view: CompareView; names: Names; isAtWork: boolean }) {
  const [a, b] = [sumOutcome(view, 'a'), sumOutcome(view, 'b')]
  // A run that has not ended would seem to have saved its remaining steps.
  const isOpen =
    isAtWork ||
    (['a', 'b'] as const).some(
      (side) => view.answers[side] === '' && /waiting|sleeping/.test(view[side].session.status),
    )
  const rows: [name: string, a: string, b: string, change: string][] = [
    ['Model', a.models, b.models, a.models === b.models ? 'same' : 'differs'],
    ['Steps answered', String(a.steps), String(b.steps), formatChange(b.steps - a.steps, String)],
    ['Tokens', formatShort(a.tokens), formatShort(b.tokens), formatChange(b.tokens - a.tokens, formatShort)],
    ['Cost', formatCost(a.cost), formatCost(b.cost), formatCostChange(a.cost, b.cost)],
    ['Active time', formatDuration(a.ms), formatDuration(b.ms), formatChange(b.ms - a.ms, formatDuration)],
  ]
  return (
    <section class="outcome" aria-label="Outcome" aria-busy={isAtWork}>
      <h2>
        {names[0] === 'A' ? 'Outcome' : 'After the fork'}
        {isOpen && <small role="status">{isAtWork ? 'running …' : 'not finished'}</small>}
      </h2>
      <Table head={[<span class="sr">Measure</span>, ...names, 'Difference']}>
        <tr>
          <th scope="row">State</th>
          {[view.a, view.b].map(({ session }) => (
            <td key={session.id}>
              <StatePill session={session} />
            </td>
          ))}
          <td>{view.a.verdict.state === view.b.verdict.state ? 'same' : 'differs'}</td>
        </tr>
        {rows.map(([name, ...cells]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            {cells.map((cell, index) => (
              <td key={index}>{isOpen && index === 2 ? '–' : cell}</td>
            ))}
          </tr>
        ))}
      </Table>
      <div class="answers">
        <h3>Final answer</h3>
        <WordDiff
          a={dropMarks(a.answer)}
          b={dropMarks(b.answer)}
          names={names}
          absent={[view.a.verdict.text, view.b.verdict.text]}
        />
      </div>
      <Next view={view} isAtWork={isAtWork} />
    </section>
  )
}

function Next({ view, isAtWork }: { view: CompareView; isAtWork: boolean }) {
  if (view.fork === null || isAtWork) return null
  const fork = view[view.fork].session
  const { sessionId = '', seq = 1 } = fork.forkedFrom ?? {}
  const again = lastFork.id === sessionId && lastFork.change !== null
  return (
    <p class="buttons next-buttons">
      <a class="button primary" href={sessionAddress(fork.id)}>
        {fork.status === 'waiting' ? 'Answer in the fork' : 'Open the fork'}
      </a>
      <a
        class="button"
        href={sessionAddress(sessionId, again ? undefined : seq)}
        onClick={() => (lastFork.isDue = again)}
      >
        Try another
      </a>
    </p>
  )
}

/** Strips bold and heading markers, which would split the marked words. */
function dropMarks(text: string): string {
  return text.replace(/\*\*(?=\S)(.+?)(?<=\S)\*\*/g, '$1').replace(/^#{1,6} /gm, '')
}

/** An original counts only from the fork on, because the fork's log does not contain earlier records. */
function sumOutcome({ fork, commonRecords, steps, answers, ...views }: CompareView, side: 'a' | 'b') {
  const view = views[side]
  const before = fork === null || fork === side ? 0 : commonRecords
  const own = view.rows.slice(before)
  const start = view.rows[Math.max(0, before - 1)]
  const last = own.at(-1)
  const bars = view.bars.filter(({ from }) => from >= (start?.at ?? 0))
  // The time that people took to answer says nothing about the run.
  const waited = measureUnion(bars, ['waits'], last?.at ?? 0)
  return {
    models: listModels(own),
    steps: steps.filter(
      ({ [side]: step }) => step && !step.isInherited && step.failure === null && step.seq > before,
    ).length,
    tokens: Math.max(0, (last?.tokens ?? 0) - (start?.tokens ?? 0)),
    cost: sumCosts(own.map(({ paid }) => paid)),
    ms: last && start ? last.at - start.at - waited : 0,
    answer: answers[side],
  }
}

interface PairProps {
  step: CompareView['steps'][number]
  view: CompareView
  isFirst: boolean
}

function Pair({ step, view, isFirst }: PairProps) {
  return (
    <section class={`pair${isFirst ? ' first-difference' : ''}`} aria-label={`Step ${step.step}`}>
      <h2>
        Step {step.step}
        {isFirst && <small>first difference</small>}
      </h2>
      <div class="pair-sides">
        <Side side={step.a} other={step.b} id={view.a.session.id} />
        <Side side={step.b} other={step.a} id={view.b.session.id} />
      </div>
    </section>
  )
}

function Side({ side, other, id }: { side: CompareStep | null; other: CompareStep | null; id: string }) {
  if (!side) return <div class="pair-side missing">No step with this number</div>
  const differs = (mine: unknown, theirs: unknown): string =>
    other !== null && JSON.stringify(mine) !== JSON.stringify(theirs) ? ' differs' : ''
  return (
    <div class="pair-side">
      <p class="pair-facts">
        {side.isInherited ? (
          <span>from the original</span>
        ) : (
          <>
            <a href={sessionAddress(id, side.seq)}>record {side.seq}</a>
            <span>{formatShort(side.tokens)} tokens</span>
            <span>{formatMoney(side.cost)}</span>
            <span>{formatDuration(side.ms)}</span>
          </>
        )}
      </p>
      {side.userText !== '' && (
        <div class={`said of-user${differs(side.userText, other?.userText)}`}>
          <LongText text={side.userText} first={800} />
        </div>
      )}
      {side.text !== '' && (
        <div class={`said${differs(side.text, other?.text)}`}>
          <Said text={side.text} />
        </div>
      )}
      {side.calls.map((call, index) => {
        const theirs = other?.calls[index]
        return (
          <div key={index} class="call">
            <div class={`call-head${differs(call.name, theirs?.name)}`}>
              <span class="call-name">{call.name}</span>
            </div>
            <CodeText text={formatJson(call.arguments)} class={differs(call.arguments, theirs?.arguments)} />
            {call.result !== null && (
              <CodeText
                text={formatJson(call.result)}
                class={`result${differs(call.result, theirs?.result)}`}
              />
            )}
          </div>
        )
      })}
      {side.text === '' && side.calls.length === 0 && (
        <p class="empty">{side.failure ?? 'No text and no calls'}</p>
      )}
    </div>
  )
}

function Ways({ chart, view }: { chart: ChartView; view: CompareView }) {
  const [svg, markOf] = useMemo(() => {
    const transitions = new Map(chart.transitions.map((one) => [one.id, one]))
    // Both sessions took the transitions before the fork.
    const [inA, inB] = (['a', 'b'] as const).map((side) => {
      const shared =
        side === view.fork ? view[side === 'a' ? 'b' : 'a'].rows.slice(0, view.commonRecords) : []
      const rows = [...shared, ...view[side].rows]
      return new Set(rows.flatMap((row) => [...row.transitionIds, ...listStates(row, transitions)]))
    })
    const mark = (id: string): Mark | '' => {
      const [a, b] = [inA?.has(id), inB?.has(id)]
      return a && b ? 'both' : a ? 'only-a' : b ? 'only-b' : ''
    }
    return [drawVisitedChart(chart, new Set([...(inA ?? []), ...(inB ?? [])])), mark] as const
  }, [view, chart])
  return <Sheet svg={svg} lit={{ active: noPaths, transitionIds: noPaths, markOf }} />
}

const noPaths: readonly string[] = []

/** After this time the diff is abandoned and both texts are marked as different. */
const longestMs = 120

function WordDiff({ a, b, names, absent }: { a: string; b: string; names: Names; absent?: Names }) {
  const sides = useMemo(() => compareWords(a, b), [a, b])
  return (
    <div class="word-diff" role="group" aria-label="Differences">
      {sides.map((parts, side) => (
        <p key={side} tabIndex={0}>
          <span class="letter">{names[side]}</span>
          {parts.length === 0 && (
            <span class="json-empty">{absent ? `No final answer. ${absent[side]}` : 'empty'}</span>
          )}
          {parts.map(({ text, differs }, index) => {
            if (!differs) return <span key={index}>{text}</span>
            const [Part, tone] = side === 0 ? (['del', 'bad'] as const) : (['ins', 'good'] as const)
            return (
              <Part key={index} class={`tone-${tone}`}>
                {text}
              </Part>
            )
          })}
        </p>
      ))}
    </div>
  )
}

interface Part {
  text: string
  differs: boolean
}

/** A space between two changed words counts as changed. */
function compareWords(a: string, b: string): [Part[], Part[]] {
  const parts = diffArrays(splitWords(a), splitWords(b), { timeout: longestMs })
  if (parts === undefined) return [[{ text: a, differs: true }], [{ text: b, differs: true }]]
  const sides: [Part[], Part[]] = [[], []]
  for (const { value, added, removed } of parts) {
    const text = value.join('')
    for (const [at, isHere] of [!added, !removed].entries())
      if (isHere) sides[at]?.push({ text, differs: added || removed })
  }
  for (const side of sides)
    for (const [at, part] of side.entries())
      if (/^[^\S\n]+$/.test(part.text) && side[at - 1]?.differs && side[at + 1]?.differs) part.differs = true
  return sides
}

function splitWords(text: string): string[] {
  return text.match(/[\p{L}\p{M}\p{N}_]+|\r?\n|[^\S\r\n]+|[^]/gu) ?? []
}
