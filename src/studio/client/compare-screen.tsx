import { useMemo } from 'preact/hooks'
import type { ChartView, CompareStep, CompareView, SessionView } from '../protocol.js'
import { Sheet } from './chart-pane.js'
import { LongText } from './json-tree.js'
import { listStates } from './timeline-layout.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import type { Mark } from './picture.js'
import { StatePill } from './run-screen.js'
import type { Source } from './data-source.js'
import { formatCount, formatDuration, formatMoney, formatJson, formatShort } from './format.js'

/** Two sessions side by side: a fork and its origin, or any two. */
export function CompareScreen({ source, a, b }: { source: Source; a: string; b: string }) {
  const chart = useLoaded('chart', () => source.chart())
  const both = useLoaded(`compare ${a} ${b}`, () => source.compare(a, b))
  if (both.error !== null) {
    return (
      <Trouble error={both.error} onRetry={both.reload}>
        <a class="button" href="#/">
          All sessions
        </a>
      </Trouble>
    )
  }
  if (!both.value || !chart.value) return <Loading what="Comparing" />
  const view = both.value
  const folded = view.steps.findIndex(({ isSame }) => !isSame)
  const common = folded === -1 ? view.steps.length : folded
  const differing = view.steps.slice(common)
  return (
    <main class="compare">
      <h1>Compare</h1>
      <div class="compare-heads">
        <SessionHead letter="A" view={view.a} />
        <SessionHead letter="B" view={view.b} />
      </div>
      <p class="common">
        {view.commonRecords === 0
          ? 'They have no beginning in common.'
          : `They have ${formatCount(view.commonRecords, 'record')} and ${formatCount(view.commonMessages, 'message')} in common${common > 0 ? `: ${formatCount(common, 'step')} alike` : ''}.`}
      </p>
      {common > 0 && (
        <details class="alike">
          <summary>{formatCount(common, 'step')} alike</summary>
          {view.steps.slice(0, common).map((step) => (
            <Pair key={step.step} step={step} view={view} isFirst={false} />
          ))}
        </details>
      )}
      {differing.length === 0 && <p class="empty">Every step is alike.</p>}
      {differing.map((step, index) => (
        <Pair key={step.step} step={step} view={view} isFirst={index === 0} />
      ))}
      <section class="compare-chart">
        <h2>On the chart</h2>
        <p class="legend">
          <span class="key only-a">only A</span> <span class="key only-b">only B</span>{' '}
          <span class="key both">both</span>
        </p>
        <Ways chart={chart.value} view={view} />
      </section>
    </main>
  )
}

function SessionHead({ letter, view: { session, rows } }: { letter: string; view: SessionView }) {
  const last = rows.at(-1)
  return (
    <header class={`compare-head letter-${letter.toLowerCase()}`}>
      <span class="letter">{letter}</span>
      <div>
        <a class="session-title" href={`#/session/${encodeURIComponent(session.id)}`}>
          {session.title || session.name || session.id}
        </a>
        <p>
          <StatePill state={session.state} />
          {session.steps !== null && <span>{formatCount(session.steps, 'step')}</span>}
          <span>{formatShort(session.tokens)} tokens</span>
          <span>{formatMoney(session.cost)}</span>
          {last && <span>{formatDuration(last.at - (rows[0]?.at ?? last.at))}</span>}
        </p>
      </div>
    </header>
  )
}

function Pair({
  step,
  view,
  isFirst,
}: {
  step: CompareView['steps'][number]
  view: CompareView
  isFirst: boolean
}) {
  return (
    <section class={`pair${isFirst ? ' first-difference' : ''}`} aria-label={`Step ${step.step}`}>
      <h2>
        Step {step.step}
        {isFirst && <small>the first difference</small>}
      </h2>
      <div class="pair-sides">
        <Side side={step.a} other={step.b} id={view.a.session.id} />
        <Side side={step.b} other={step.a} id={view.b.session.id} />
      </div>
    </section>
  )
}

function Side({ side, other, id }: { side: CompareStep | null; other: CompareStep | null; id: string }) {
  if (!side) return <div class="pair-side missing">No such step</div>
  const differs = (mine: unknown, theirs: unknown): string =>
    other !== null && JSON.stringify(mine) !== JSON.stringify(theirs) ? ' differs' : ''
  return (
    <div class="pair-side">
      <p class="pair-facts">
        <a href={`#/session/${encodeURIComponent(id)}/${side.seq}`}>record {side.seq}</a>
        <span>{formatShort(side.tokens)} tokens</span>
        <span>{formatMoney(side.cost)}</span>
        <span>{formatDuration(side.ms)}</span>
      </p>
      {side.text !== '' && (
        <div class={`said${differs(side.text, other?.text)}`}>
          <LongText text={side.text} />
        </div>
      )}
      {side.calls.map((call, index) => {
        const theirs = other?.calls[index]
        return (
          <div key={index} class="call">
            <div class={`call-head${differs(call.name, theirs?.name)}`}>
              <span class="call-name">{call.name}</span>
            </div>
            <pre tabIndex={0} class={differs(call.arguments, theirs?.arguments)}>
              <LongText text={formatJson(call.arguments)} first={800} />
            </pre>
            {call.result !== null && (
              <pre tabIndex={0} class={`result${differs(call.result, theirs?.result)}`}>
                <LongText text={formatJson(call.result)} first={800} />
              </pre>
            )}
          </div>
        )
      })}
      {side.text === '' && side.calls.length === 0 && <p class="empty">No text and no calls.</p>}
    </div>
  )
}

function Ways({ chart, view }: { chart: ChartView; view: CompareView }) {
  const markOf = useMemo(() => {
    const transitions = new Map(chart.transitions.map((one) => [one.id, one]))
    const [inA, inB] = [view.a, view.b].map(
      ({ rows }) => new Set(rows.flatMap((row) => [...row.taken, ...listStates(row, transitions)])),
    )
    return (id: string): Mark | '' => {
      const [a, b] = [inA?.has(id), inB?.has(id)]
      return a && b ? 'both' : a ? 'only-a' : b ? 'only-b' : ''
    }
  }, [view, chart])
  const svg = chart.sheets[0]?.svg
  if (svg === undefined) return null
  return (
    <Sheet
      svg={svg}
      lit={{ active: noPaths, taken: noPaths, markOf }}
      row={null}
      ms={0}
      transitions={new Map()}
      onState={() => undefined}
      onTransition={() => undefined}
    />
  )
}

const noPaths: readonly string[] = []
