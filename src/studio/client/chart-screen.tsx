import { formatCount } from '../../core/format/format-words.js'
import { useMemo, useState } from 'preact/hooks'
import type { ChartState, ChartTransition, ChartView, VisitsView } from '../protocol.js'
import { blankRow } from './session-data.js'
import { ChartPane, countStateVisits, getParentPath } from './chart-pane.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { replaceAddress } from './page.js'
import type { Source } from './data-source.js'
import { paths } from '../routes.js'
import { capitalize, getLastPart, formatStatePath } from '../format.js'

export function ChartScreen({ source, state }: { source: Source; state: string | null }) {
  const chart = useLoaded('chart', () => source.chart())
  const visits = useLoaded('visits', () => source.send(paths.visits))
  const [chosen, choose] = useState(state)
  const shown = chart.value?.states.find(({ path }) => path === chosen) ?? null
  // The picture compares rows by identity.
  const row = useMemo(() => shown && { ...blankRow, label: '', to: [shown.path], state: shown.path }, [shown])
  if (chart.error !== null && !chart.value) return <Trouble error={chart.error} onRetry={chart.reload} />
  if (!chart.value) return <Loading what="Loading the chart" />
  const view = chart.value
  const stored = visits.value?.sessions ? visits.value : null
  const go = (path: string): void => {
    choose(path)
    replaceAddress(`#/chart/${encodeURIComponent(path)}`)
  }
  return (
    <main class="chart-screen">
      <ChartPane
        chart={view}
        row={row}
        first={noPlaces}
        place={0}
        ms={0}
        visits={visits.value}
        overlays={['stored', 'tests', 'never']}
        onState={go}
        onTransition={(ids) => {
          const source = view.transitions.find(({ id }) => ids.includes(id))?.source
          if (source !== undefined) go(source)
        }}
      />
      <aside class="side about">
        {shown ? (
          <About chart={view} visits={stored} state={shown} onState={go} />
        ) : (
          <WholeChart chart={view} visits={stored} onState={go} />
        )}
      </aside>
    </main>
  )
}

const noPlaces: ReadonlyMap<string, number> = new Map()

interface AboutProps {
  chart: ChartView
  /** Null if there are no stored sessions. */
  visits: VisitsView | null
  onState: (path: string) => void
}

function WholeChart({ chart, visits, onState }: AboutProps) {
  const visited = chart.transitions.filter(({ id }) => (visits?.counts[id] ?? 0) > 0).length
  const tested = chart.transitions.filter(({ isTested }) => isTested === true).length
  return (
    <div class="stack">
      <h1>{chart.id}</h1>
      <p class="lead">{chart.description}</p>
      <p>
        {formatCount(chart.transitions.length, 'transition')}
        {chart.transitions.some(({ isTested }) => isTested !== null) &&
          `, ${tested} covered by generated tests`}
        {visits !== null && `, ${visited} taken in ${formatCount(visits.sessions, 'stored session')}`}.
      </p>
      <h2>States</h2>
      <ul class="plain">
        {chart.states
          .filter(({ path }) => !path.includes('.'))
          .map(({ path, description }) => (
            <li key={path}>
              <button class="link" onClick={() => onState(path)}>
                {path}
              </button>
              <p>{description}</p>
            </li>
          ))}
      </ul>
    </div>
  )
}

function About({ chart, visits, state, onState }: AboutProps & { state: ChartState }) {
  const { path, description, isTested } = state
  const facts = [
    formatEntered(chart, visits, path),
    isTested === null ? '' : `${isTested ? '' : 'not '}covered by generated tests`,
  ].filter(Boolean)
  const own = chart.transitions.filter(({ source }) => source === path)
  // Transitions of outer states also apply.
  const above = chart.transitions.filter(
    ({ source }) => source !== path && (source === '(root)' || path.startsWith(`${source}.`)),
  )
  const into = chart.transitions.filter(({ target }) => target === path)
  // A transition without a description has the description of its state.
  const known = new Set([chart, ...chart.states].map((one) => one.description))
  return (
    <div class="stack">
      <p class="crumbs">{formatStatePath([getParentPath(path)])}</p>
      <h1>{getLastPart(path)}</h1>
      <p class="lead">{description}</p>
      <p>{facts.length > 0 && `${capitalize(facts.join('; '))}.`}</p>
      <Transitions title="Transitions" list={own} {...{ known, visits, onState }} />
      <Transitions title="From outer states" list={above} {...{ known, visits, onState }} />
      <Transitions title="Transitions to this state" list={into} {...{ known, visits, onState }} isInto />
    </div>
  )
}

function formatEntered(chart: ChartView, visits: VisitsView | null, path: string): string {
  if (visits === null) return ''
  const times = countStateVisits(chart, visits, path)
  return times === 0
    ? 'no stored session entered it'
    : `stored sessions entered it ${formatCount(times, 'time')}`
}

function formatTaken(visits: VisitsView | null, id: string): string {
  if (visits === null) return ''
  const times = visits.counts[id] ?? 0
  return times > 0 ? `taken ${formatCount(times, 'time')}` : 'never taken'
}

interface TransitionsProps {
  title: string
  visits: VisitsView | null
  list: readonly ChartTransition[]
  onState: (path: string) => void
  isInto?: boolean
  known: ReadonlySet<string>
}

function Transitions({ title, visits, list, onState, isInto = false, known }: TransitionsProps) {
  if (list.length === 0) return null
  return (
    <section>
      <h2>{title}</h2>
      <ul class="transitions">
        {list.map((one) => {
          const { id, event, guard, target, source, actions, description, isTested } = one
          const to = isInto ? source : target
          return (
            <li key={id}>
              <div>
                <strong>{event === '' ? 'always' : event}</strong>{' '}
                {guard !== '' && <span class="guard">[{guard}]</span>}
              </div>
              <div class="leads">
                {isInto ? '← ' : '→ '}
                {to === null ? (
                  'stays'
                ) : (
                  <button class="link" onClick={() => onState(to)}>
                    {to}
                  </button>
                )}
              </div>
              {description !== '' && !known.has(description) && !isInto && <p>{description}</p>}
              {actions.length > 0 && <p class="does">{actions.join(', ')}</p>}
              <p class="does">
                {[formatTaken(visits, id), isTested === null ? '' : isTested ? 'tested' : 'untested']
                  .filter(Boolean)
                  .join(' · ')}
              </p>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
