import { useEffect, useMemo, useState } from 'preact/hooks'
import type { Answer, ChartView, MomentView, RecordRow, SessionView } from '../protocol.js'
import { useWrittenAddress } from './page.js'
import { Actions } from './actions.js'
import { ForkDialog } from './fork-dialog.js'
import { forkableStates } from '../session-query.js'
import { describeFork, type WhatIf } from './what-if.js'
import { ChartPane } from './chart-pane.js'
import { listStates, findPlayDelay, findStepStart, mergeBars, mergeRows } from './timeline-layout.js'
import { loadPart } from './loading.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { MomentCache } from './session-data.js'
import { useOpenedSession } from './session-data.js'
import type { ShareDialog } from './share-dialog.js'
import { Slider } from './slider.js'
import type { Source } from './data-source.js'
import { mayResume, RunHead } from './run-head.js'
import { Announcer, useKeys, useLatest, useLive, useMoment } from './run-hooks.js'
import { listRunSteps } from './run-steps.js'
import { showControls } from './page.js'
import { findSteps, StepsPane } from './steps-pane.js'
import { VerdictStrip } from './run-head.js'
import { BudgetTab, GuardsTab, RecordTab, StateTab } from './run-tabs.js'
import { Timeline } from './timeline.js'
import { Transcript } from './transcript.js'
import { formatStatePath } from './format.js'

const tabs = ['transcript', 'record', 'state', 'guards', 'budget'] as const
type Tab = (typeof tabs)[number]

const stepMs = 700

export interface RunProps {
  source: Source
  id: string
  /** The record to show first. Null shows the last one. */
  seq: number | null
  onProblem: (problem: string | null) => void
}

export function RunScreen({ source, id, seq, onProblem }: RunProps) {
  const chart = useLoaded('chart', () => source.chart())
  const session = useOpenedSession(source, id, seq)
  const error = session.error ?? chart.error
  if (error !== null && (!session.value || !chart.value)) {
    return (
      <Trouble
        error={error}
        onRetry={() => {
          chart.reload()
          session.reload()
        }}
      >
        <a class="button" href="#/">
          All sessions
        </a>
      </Trouble>
    )
  }
  if (!session.value || !chart.value) return <Loading what="Loading the session" />
  const { view, moment } = session.value
  if (view.rows.length === 0) {
    return (
      <main class="trouble">
        <h1>{view.session.problem === null ? 'Nothing here yet' : 'This session is damaged'}</h1>
        <p>{view.session.problem ?? 'The session exists but has no records yet.'}</p>
        <a class="button" href="#/">
          All sessions
        </a>
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
      startSeq={seq}
      onProblem={onProblem}
    />
  )
}

interface Props {
  source: Source
  chart: ChartView
  view: SessionView
  end: MomentView | null
  change: (change: (view: SessionView) => SessionView) => void
  reload: () => void
  startSeq: number | null
  onProblem: (problem: string | null) => void
}

function Run({ source, chart, view, end, change, reload, startSeq, onProblem }: Props) {
  const { rows, session, readOnly, isPart } = view
  const { id } = session
  const last = rows.length - 1
  const [place, setPlace] = useState(() => {
    const at = startSeq === null ? -1 : rows.findIndex(({ seq }) => seq === startSeq)
    return at === -1 ? last : at
  })
  const isOpen = ['running', 'waiting', 'sleeping'].includes(session.standing)
  const [isLive, setLive] = useState(startSeq === null && !source.isFile)
  const [isPlaying, setPlaying] = useState(false)
  const [ms, setMs] = useState(0)
  const [tab, setTab] = useState<Tab>('transcript')
  const [fork, setFork] = useState<{ wanted: WhatIf | null; seq?: number } | null>(null)
  const [sharing, setSharing] = useState<{ Dialog: typeof ShareDialog } | null>(null)
  const [stepWords, setStepWords] = useState('')
  const [streaming, setStreaming] = useState('')
  const [areLanesShown, showLanes] = useState(true)
  // All messages of a long session are loaded once the reader searches them or scrolls to earlier ones.
  const [isWhole, wantWhole] = useState(false)
  // Partial moments are dropped when the whole session is loaded.
  const moments = useMemo(
    () => new MomentCache(source, id, { known: end, isWhole }),
    [source, id, isPart, isWhole],
  )
  const row = rows[Math.min(place, last)]
  const [round, setRound] = useState(0)
  const moment = useMoment(moments, row, isPart ? 0 : (rows.at(-1)?.seq ?? 0), round)
  const [wantsVisits, wantVisits] = useState(false)
  const visits = useLoaded(wantsVisits ? 'visits' : '', () =>
    wantsVisits ? source.visits() : Promise.resolve(null),
  )

  /** Goes to a record. The token walks to the next one and jumps to any other. */
  const go = useLatest((to: number) => {
    const at = Math.max(0, Math.min(last, to))
    setMs(at === place + 1 ? stepMs : 0)
    setPlace(at)
    setLive(false)
    setPlaying(false)
  })

  useLive(source, id, isPart ? null : (rows[last]?.seq ?? 0), {
    onMessage: (message) => {
      if (message.type === 'store') onProblem(message.problem)
      else if (message.type === 'rows') {
        moments.forgetFrom(message.reset ? 1 : (message.rows[0]?.seq ?? Infinity))
        setRound((before) => before + 1)
        setStreaming('')
        change((before) => ({
          ...before,
          rows: message.reset ? message.rows : mergeRows(before.rows, message.rows),
          bars: message.reset ? message.bars : mergeBars(before.bars, message.bars),
          verdict: message.verdict,
        }))
      } else if (message.type === 'session' && message.row.id === id) {
        change((before) => ({ ...before, session: message.row }))
      } else if (message.type === 'text') {
        setStreaming((before) => (message.reset ? message.text : before + message.text))
      } else if (message.type === 'gone' && message.sessionId === id) reload()
    },
  })

  // Live mode follows the run.
  useEffect(() => {
    if (!isLive) return
    setMs(last === place + 1 ? stepMs : 0)
    setPlace(last)
  }, [isLive, last])

  useEffect(() => {
    if (!isPlaying) return undefined
    const delay = findPlayDelay(rows, place)
    const timer = setTimeout(() => {
      setMs(Math.min(stepMs, delay - 20))
      setPlace(Math.min(last, place + 1))
      if (place >= last - 1) setPlaying(false)
    }, delay)
    return () => clearTimeout(timer)
  }, [isPlaying, last, place])

  const play = (): void => {
    setLive(false)
    if (!isPlaying && place >= last) setPlace(0)
    setPlaying(!isPlaying)
  }
  // The first step of a partial session contains everything before it.
  const steps = useMemo(
    () => listRunSteps({ rows, bars: view.bars }).slice(isPart ? 1 : 0),
    [rows, view.bars, isPart],
  )
  const goStep = (by: 1 | -1): void => {
    const found = findSteps(steps, stepWords)
    const next = by > 0 ? found.find((step) => step.from > place) : found.findLast((step) => step.to < place)
    if (next) go(next.place)
  }
  useKeys((event) => {
    const { key, shiftKey } = event
    if (key === 'ArrowRight') go(shiftKey ? findStepStart(rows, place, 1) : place + 1)
    else if (key === 'ArrowLeft') go(shiftKey ? findStepStart(rows, place, -1) : place - 1)
    else if (key === 'Home') go(0)
    else if (key === 'End') go(last)
    else if (key === ' ') play()
    else if (key === 'j' || key === 'k') goStep(key === 'j' ? 1 : -1)
    else if (/^[1-5]$/.test(key)) setTab(tabs[Number(key) - 1] ?? 'transcript')
    else return false
    return true
  })
  const seqPart = isLive || !row ? '' : `/${row.seq}`
  useWrittenAddress(source.isFile ? null : `#/session/${encodeURIComponent(id)}${seqPart}`)

  useEffect(() => {
    document.title = showControls(`${session.title || session.id} – Statewright`)
  }, [session.title, session.id])
  const first = useMemo(() => findFirstPlaces(rows, chart), [rows, chart])
  const jump = (matches: (row: RecordRow) => boolean): void => {
    // The nearest record before this one, or the first.
    const before = rows.findLastIndex((one, at) => at < place && matches(one))
    const at = before === -1 ? rows.findIndex(matches) : before
    if (at !== -1) go(at)
  }
  const canAct = !source.isFile && readOnly === null
  const onEdit = useLatest((wanted: WhatIf) => setFork({ wanted, seq: wanted.at }))
  const answer = async (given: Answer): Promise<void> => {
    await source.answer(id, given)
    setLive(true)
  }
  const share = async (): Promise<void> => {
    const { ShareDialog: Dialog } = await loadPart(() => import('./share-dialog.js'))
    setSharing({ Dialog })
  }
  const verdict = useMemo(
    () => (
      <VerdictStrip
        view={view}
        steps={steps}
        onFork={canAct ? (seq) => setFork({ wanted: null, seq }) : null}
        onShare={source.isFile ? null : share}
        onResume={canAct && mayResume(view) ? () => answer({ type: 'resume' }) : null}
        onPlace={go}
      />
    ),
    [view, steps, canAct],
  )
  if (!row) return null
  const forkRow = rows.find(({ seq }) => seq === fork?.seq) ?? row
  return (
    <main class="run">
      <RunHead
        view={view}
        row={row}
        step={steps.findLast(({ from }) => from <= place)?.step ?? row.step}
        onFork={canAct ? () => setFork({ wanted: null }) : null}
      />
      {verdict}
      <StepsPane
        steps={steps}
        words={stepWords}
        place={place}
        parent={view.parent}
        load={source.session}
        onWords={setStepWords}
        onPlace={go}
      />
      <ChartPane
        chart={chart}
        row={row}
        first={first}
        place={place}
        ms={prefersReducedMotion() ? 0 : ms}
        visits={visits.value}
        overlays={['run', 'stored', 'tests', 'never']}
        moment={moment instanceof Error ? null : moment}
        onOverlay={(overlay) => wantVisits(overlay === 'stored' || overlay === 'never')}
        onState={(path) => jump(({ to }) => to.some((one) => one === path || one.startsWith(`${path}.`)))}
        onTransition={(ids) => jump(({ taken }) => taken.some((one) => ids.includes(one)))}
      />
      <section class="side">
        <div class="tabs" role="tablist" aria-label="Details of this record">
          {tabs.map((one) => (
            <button
              key={one}
              type="button"
              role="tab"
              id={`tab-${one}`}
              aria-selected={tab === one}
              aria-controls="panel"
              tabIndex={tab === one ? 0 : -1}
              onClick={() => setTab(one)}
              onKeyDown={(event) => {
                const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
                if (by === 0) return
                event.preventDefault()
                event.stopPropagation()
                const next = tabs[(tabs.indexOf(one) + by + tabs.length) % tabs.length] ?? one
                setTab(next)
                document.getElementById(`tab-${next}`)?.focus()
              }}
            >
              {one[0]?.toUpperCase()}
              {one.slice(1)}
            </button>
          ))}
        </div>
        <div class="panel" role="tabpanel" id="panel" aria-labelledby={`tab-${tab}`} tabIndex={0} key={tab}>
          {moment === null ? (
            <Loading what="Loading the record" />
          ) : moment instanceof Error ? (
            <Trouble error={moment} onRetry={reload} isPart />
          ) : tab === 'transcript' ? (
            <Transcript
              messages={moment.transcript}
              earlier={moment.earlier}
              onWhole={() => wantWhole(true)}
              instructions={moment.instructions}
              streaming={place === last ? streaming : ''}
              settled={moment.seq === row.seq ? row.calls : noCalls}
              speaker={(moment.context as { speaker?: string | null } | null)?.speaker ?? null}
              error={findError(moment)}
              onEdit={canAct ? onEdit : null}
            />
          ) : tab === 'record' ? (
            <RecordTab moment={moment} row={row} bars={view.bars} />
          ) : tab === 'state' ? (
            <StateTab moment={moment} />
          ) : tab === 'guards' ? (
            <GuardsTab guards={moment.guards} />
          ) : (
            <BudgetTab budget={moment.budget} elapsedMs={measureElapsed(rows, place)} />
          )}
        </div>
        {moment !== null && !(moment instanceof Error) && (
          <Actions
            key={id}
            moment={moment}
            isAsleep={row.wakeAt !== undefined}
            readOnly={session.isAttached ? null : readOnly}
            onAnswer={answer}
          />
        )}
      </section>
      <footer class="dock">
        <p class="dock-now" aria-hidden="true">
          <strong>{row.label}</strong>
          <span>{formatStatePath(row.to)}</span>
        </p>
        <Timeline
          view={view}
          place={place}
          areLanesShown={areLanesShown}
          load={source.session}
          loadMoment={(seq) => moments.loadMoment(seq, rows.at(-1)?.seq ?? 0)}
          onPlace={go}
        />
        <Slider
          rows={rows}
          place={place}
          isPlaying={isPlaying}
          isLive={source.isFile ? null : isLive && (isOpen || place === last)}
          isOpen={isOpen}
          onPlace={go}
          onPlay={play}
          onLive={() => setLive(!isLive)}
          areLanesShown={areLanesShown}
          onLanes={() => showLanes(!areLanesShown)}
        />
      </footer>
      <Announcer text={`${row.label}. ${formatStatePath(row.to)}`} />
      {sharing && (
        <sharing.Dialog
          id={id}
          seq={row.seq}
          load={(as) => source.share(id, as)}
          onClose={() => setSharing(null)}
        />
      )}
      {fork && (
        <ForkDialog
          seq={forkRow.seq}
          wanted={fork.wanted}
          canRun={forkableStates.has(forkRow.state)}
          describeEffect={(asksFirst) => describeFork(rows.indexOf(forkRow), steps, rows, asksFirst)}
          onFork={async (request) => {
            const { sessionId } = await source.fork(id, request)
            setFork(null)
            const [from, to] = [id, sessionId].map(encodeURIComponent)
            location.hash = request.run ? `#/compare/${from}/${to}` : `#/session/${to}`
          }}
          onClose={() => setFork(null)}
        />
      )}
    </main>
  )
}

/** The error that ended the run. */
function findError({ context }: MomentView): string | null {
  const { state, error } = (context ?? {}) as { state?: string; error?: { message?: string } | null }
  return state === 'ERROR' ? (error?.message ?? null) : null
}

const noCalls: RecordRow['calls'] = []

function measureElapsed(rows: readonly RecordRow[], place: number): number {
  const run = rows[place]?.run
  return Math.max(0, (rows[place]?.at ?? 0) - (rows.find((row) => row.run === run)?.at ?? 0))
}

function prefersReducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}

function findFirstPlaces(
  rows: readonly RecordRow[],
  { transitions }: ChartView,
): ReadonlyMap<string, number> {
  const known = new Map(transitions.map((one) => [one.id, one]))
  const first = new Map<string, number>()
  for (const [place, row] of rows.entries()) {
    for (const id of [...listStates(row, known), ...row.taken]) if (!first.has(id)) first.set(id, place)
  }
  return first
}
