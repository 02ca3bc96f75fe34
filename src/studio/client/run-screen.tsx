import { useMemo, useRef, useState } from 'preact/hooks'
import type { RecordRow } from '../protocol.js'
import { ChartPane } from './chart-pane.js'
import { findFirstPlaces, findStepStart } from '../timeline-layout.js'
import { AllSessions, createLazyScreen, Loading, Trouble, useLoaded } from './loading.js'
import { useOpenedSession } from './session-data.js'
import { Slider } from './slider.js'
import { type Source, SourceError } from './data-source.js'
import { paths } from '../routes.js'
import { RunHead, StatePill, VerdictStrip } from './run-head.js'
import { Announcer, useKeys, useMedia } from './run-hooks.js'
import { type RunProps, type Tab, tabs, useRunPage } from './run-page.js'
import { findSteps, StepsPane } from './steps-pane.js'
import { Timeline } from './timeline.js'
import { Transcript } from './transcript.js'
import { lastFork } from './what-if.js'
import { capitalize, compareAddress, formatStatePath, sessionAddress } from '../format.js'

const LazyMachineScreen = createLazyScreen(() =>
  import('./machine-screen.js').then((part) => part.MachineScreen),
)
export const MachineScreen = (props: { source: Source; id: string }) => (
  <LazyMachineScreen {...props} Pill={StatePill} />
)
/** Loaded on demand, because ended runs do not need it. */
const Actions = createLazyScreen(() => import('./actions.js').then((part) => part.Actions))
const RunTab = createLazyScreen(() => import('./run-tabs.js').then((part) => part.RunTab))

export function RunScreen({ source, id, seq, onProblem }: RunProps) {
  const chart = useLoaded('chart', () => source.chart())
  const session = useOpenedSession(source, id, seq)
  const error = session.error ?? chart.error
  if (error instanceof SourceError && error.code === 'machine_session')
    return <MachineScreen source={source} id={id} />
  if (error !== null && (!session.value || !chart.value)) {
    return (
      <Trouble
        error={error}
        onRetry={() => {
          chart.reload()
          session.reload()
        }}
        hasLink
      />
    )
  }
  if (!session.value || !chart.value) return <Loading what="Loading the session" />
  const { view, moment } = session.value
  if (view.rows.length === 0) {
    return (
      <main class="trouble">
        <h1>{view.session.problem === null ? 'Nothing here yet' : 'This session is damaged'}</h1>
        <p>{view.session.problem ?? 'The session exists but has no records yet.'}</p>
        <AllSessions />
      </main>
    )
  }
  return (
    <Run
      key={id}
      source={source}
      chart={chart.value}
      view={view}
      end={moment}
      change={(change) => session.set((opened) => ({ ...opened, view: change(opened.view) }))}
      reload={session.reload}
      seq={seq}
      onProblem={onProblem}
    />
  )
}

function Run(props: Parameters<typeof useRunPage>[0]) {
  const { source, chart } = props
  const run = useRunPage(props)
  const { view, row, moment, steps, place, tab, setTab, go, play, canAct, dialog } = run
  const { rows, session } = view
  const { id } = session
  const last = rows.length - 1
  const isNarrow = useMedia('(max-width: 1279px)')
  const [wantsVisits, wantVisits] = useState(false)
  const visits = useLoaded(wantsVisits ? 'visits' : '', () =>
    wantsVisits ? source.send(paths.visits) : Promise.resolve(null),
  )
  const goStep = (by: 1 | -1): void => {
    const found = findSteps(steps, run.stepWords)
    const next = by > 0 ? found.find((step) => step.from > place) : found.findLast((step) => step.to < place)
    if (next) go(next.place)
  }
  const side = useRef<HTMLElement>(null)
  const openTab = (chosen: Tab): void => {
    setTab(chosen)
    side.current?.focus()
  }
  const arrow =
    (by: 1 | -1) =>
    ({ shiftKey }: KeyboardEvent): void =>
      go(shiftKey ? findStepStart(rows, place, by) : place + by)
  useKeys({
    ArrowRight: arrow(1),
    ArrowLeft: arrow(-1),
    Home: () => go(0),
    End: () => go(last),
    ' ': play,
    j: () => goStep(1),
    k: () => goStep(-1),
    a: () => document.querySelector<HTMLElement>('.pending, .say input')?.focus(),
    ...Object.fromEntries(tabs.map((one, index) => [index + 1, () => openTab(one)])),
  })
  const first = useMemo(() => findFirstPlaces(rows, chart), [rows, chart])
  const jump = (matches: (row: RecordRow) => boolean): void => {
    // The nearest record before this one, or the first.
    const before = rows.findLastIndex((one, at) => at < place && matches(one))
    const at = before === -1 ? rows.findIndex(matches) : before
    if (at !== -1) go(at)
  }
  const verdict = useMemo(() => <VerdictStrip run={run} />, [view, steps, canAct])
  const chartPane = (
    <ChartPane
      chart={chart}
      row={row}
      first={first}
      place={place}
      ms={matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : run.ms}
      visits={visits.value}
      overlays={['run', 'stored', 'tests', 'never']}
      moment={moment instanceof Error ? null : moment}
      onOverlay={(overlay) => wantVisits(overlay === 'stored' || overlay === 'never')}
      onState={(path) => jump(({ to }) => to.some((one) => one === path || one.startsWith(`${path}.`)))}
      onTransition={(ids) => jump(({ transitionIds }) => transitionIds.some((one) => ids.includes(one)))}
    />
  )
  const shownTabs = tabs.filter(
    (one) => (one !== 'chart' || isNarrow) && (one !== 'request' || !source.isFile),
  )
  const shownTab = shownTabs.includes(tab) ? tab : 'transcript'
  return (
    <main class="run">
      <RunHead run={run} />
      {verdict}
      <StepsPane run={run} />
      {!isNarrow && chartPane}
      <section class="side" ref={side} tabIndex={-1} aria-label="Details">
        <div class="tabs" role="tablist" aria-label="Details of this record">
          {shownTabs.map((one) => (
            <button
              key={one}
              role="tab"
              id={`tab-${one}`}
              aria-selected={shownTab === one}
              aria-controls="panel"
              tabIndex={shownTab === one ? 0 : -1}
              onClick={() => setTab(one)}
              onKeyDown={(event) => {
                const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
                if (by === 0) return
                event.preventDefault()
                event.stopPropagation()
                const next =
                  shownTabs[(shownTabs.indexOf(one) + by + shownTabs.length) % shownTabs.length] ?? one
                setTab(next)
                document.getElementById(`tab-${next}`)?.focus()
              }}
            >
              {capitalize(one)}
            </button>
          ))}
        </div>
        <div
          class={`panel panel-${shownTab}`}
          role="tabpanel"
          id="panel"
          aria-labelledby={`tab-${shownTab}`}
          tabIndex={0}
          key={shownTab}
        >
          {shownTab === 'chart' ? (
            chartPane
          ) : moment === null ? (
            <Loading what="Loading the record" />
          ) : moment instanceof Error ? (
            <Trouble error={moment} onRetry={props.reload} isPart />
          ) : shownTab === 'transcript' ? (
            <Transcript run={run} moment={moment} />
          ) : (
            <RunTab tab={shownTab} run={run} moment={moment} />
          )}
        </div>
        {moment !== null &&
          !(moment instanceof Error) &&
          moment.actions.length + moment.pending.length + moment.grants.length > 0 && (
            <Actions key={id} run={run} moment={moment} />
          )}
      </section>
      <footer class="dock">
        <p class="dock-now" aria-hidden="true">
          <strong>{row.label}</strong>
          <span>{formatStatePath(row.to)}</span>
        </p>
        <Timeline run={run} />
        <Slider run={run} />
      </footer>
      <Announcer text={`${row.label}. ${formatStatePath(row.to)}`} />
      {dialog && 'Share' in dialog && (
        <dialog.Share
          id={id}
          seq={row.seq}
          load={(as) => source.send(paths.share(id, as))}
          onClose={() => run.showDialog(null)}
        />
      )}
      {dialog && 'Fork' in dialog && (
        <dialog.Fork
          rows={rows}
          steps={steps}
          seq={dialog.seq}
          change={dialog.change}
          moment={moment instanceof Error ? null : moment}
          otherAgent={view.otherAgent}
          onFork={async (request, change) => {
            const { sessionId } = await source.send(paths.fork(id), request)
            run.showDialog(null)
            Object.assign(lastFork, { id, change })
            location.hash = request.run ? compareAddress(id, sessionId) : sessionAddress(sessionId)
          }}
          onClose={() => run.showDialog(null)}
        />
      )}
    </main>
  )
}
