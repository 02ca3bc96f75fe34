import { useState } from 'preact/hooks'
import type { ChartState, ChartTransition, ChartView } from '../protocol.js'
import { ChartPane, visitsOf } from './chart-view.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import type { Source } from './source.js'
import { count, lastPart, statePath } from './words.js'

/** The machine as documentation: what each state is for, and what can happen next in it. */
export function ChartScreen({ source, state }: { source: Source; state: string | null }) {
  const chart = useLoaded('chart', () => source.chart())
  const [chosen, choose] = useState(state)
  if (chart.error !== null && !chart.value) return <Trouble error={chart.error} onRetry={chart.reload} />
  if (!chart.value) return <Loading what="Reading the chart" />
  const view = chart.value
  const shown = view.states.find(({ path }) => path === chosen) ?? null
  const go = (path: string): void => {
    choose(path)
    history.replaceState(null, '', `#/chart/${encodeURIComponent(path)}`)
  }
  return (
    <main class="chart-screen">
      <ChartPane
        chart={view}
        row={shown ? marked(shown) : null}
        first={nothing}
        place={0}
        ms={0}
        overlays={['stored', 'tests', 'never']}
        onState={go}
        onTransition={(ids) => {
          const source = view.transitions.find(({ id }) => ids.includes(id))?.source
          if (source !== undefined) go(source)
        }}
      />
      <aside class="side about">
        {shown ? <About chart={view} state={shown} onState={go} /> : <Whole chart={view} onState={go} />}
      </aside>
    </main>
  )
}

const nothing: ReadonlyMap<string, number> = new Map()
const rows = new Map<string, ReturnType<typeof rowOf>>()

/** The chosen state stands for where the machine is. */
function marked({ path }: ChartState): ReturnType<typeof rowOf> {
  const row = rows.get(path) ?? rowOf(path)
  rows.set(path, row)
  return row
}

function rowOf(path: string) {
  return {
    seq: 0,
    at: 0,
    type: 'event' as const,
    label: '',
    from: [],
    to: [path],
    taken: [],
    state: path,
    step: 0,
    run: 0,
    tokens: 0,
    cost: null,
    flags: [],
    started: [],
  }
}

interface AboutProps {
  chart: ChartView
  onState: (path: string) => void
}

function Whole({ chart, onState }: AboutProps) {
  const visited = chart.transitions.filter(({ visits }) => visits > 0).length
  const tested = chart.transitions.filter(({ isTested }) => isTested === true).length
  return (
    <div class="stack">
      <h1>{chart.id}</h1>
      <p class="lead">{chart.description}</p>
      <p>
        {count(chart.transitions.length, 'transition')}: generated tests take {tested}, stored sessions took{' '}
        {visited}.
      </p>
      <h2>States</h2>
      <ul class="plain">
        {chart.states
          .filter(({ path }) => !path.includes('.') && path !== '(root)')
          .map(({ path, description }) => (
            <li key={path}>
              <button type="button" class="link" onClick={() => onState(path)}>
                {path}
              </button>
              <p>{description}</p>
            </li>
          ))}
      </ul>
    </div>
  )
}

function About({ chart, state, onState }: AboutProps & { state: ChartState }) {
  const { path, description, isTested } = state
  const visits = visitsOf(chart, state)
  const own = chart.transitions.filter(({ source }) => source === path)
  // What those that contain it declare holds in it, too.
  const above = chart.transitions.filter(
    ({ source }) => source !== path && (source === '(root)' || path.startsWith(`${source}.`)),
  )
  const into = chart.transitions.filter(({ target }) => target === path)
  return (
    <div class="stack">
      <p class="crumbs">{statePath([path.slice(0, Math.max(0, path.lastIndexOf('.')))])}</p>
      <h1>{lastPart(path)}</h1>
      <p class="lead">{description}</p>
      <p>
        {visits === 0 ? 'No stored session was in it' : `Stored sessions were in it ${count(visits, 'time')}`}
        ; {isTested ? 'generated tests enter it.' : 'no generated test enters it.'}
      </p>
      <Transitions title="What can happen next" list={own} known={description} onState={onState} />
      <Transitions title="From the states around it" list={above} onState={onState} />
      <Transitions title="What leads here" list={into} onState={onState} isInto />
    </div>
  )
}

interface TransitionsProps {
  title: string
  list: readonly ChartTransition[]
  onState: (path: string) => void
  isInto?: boolean
  /** What has been said already. */
  known?: string
}

function Transitions({ title, list, onState, isInto = false, known = '' }: TransitionsProps) {
  if (list.length === 0) return null
  return (
    <section>
      <h2>{title}</h2>
      <ul class="transitions">
        {list.map((one) => {
          const { id, event, guard, target, source, actions, description, visits, isTested } = one
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
                  <button type="button" class="link" onClick={() => onState(to)}>
                    {to}
                  </button>
                )}
              </div>
              {description !== '' && description !== known && !isInto && <p>{description}</p>}
              {actions.length > 0 && <p class="does">{actions.join(', ')}</p>}
              <p class="does">
                {visits > 0 ? `taken ${count(visits, 'time')}` : 'never taken'} ·{' '}
                {isTested ? 'tested' : 'untested'}
              </p>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
