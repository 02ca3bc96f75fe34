import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Answer, ChartView, MomentView, RecordRow, SessionView } from '../protocol.js'
import { showControls, useWrittenAddress } from './page.js'
import type { ForkDialog } from './fork-dialog.js'
import { isRequestEnd } from '../session-query.js'
import { type Change, lastFork } from './what-if.js'
import { ChartPane } from './chart-pane.js'
import { listStates, findStepStart, mergeBars, mergeRows } from '../timeline-layout.js'
import { AllSessions, createLazyScreen, Loading, loadPart, Trouble, useLoaded } from './loading.js'
import { createMomentCache } from './moment-cache.js'
import { useOpenedSession } from './session-data.js'
import type { ShareDialog } from './share-dialog.js'
import { Slider } from './slider.js'
import { type Source, SourceError } from './data-source.js'
import { paths } from '../routes.js'
import { RowPill, mayResume, RunHead, VerdictStrip } from './run-head.js'
import {
  Announcer,
  useKeys,
  useLatest,
  useLive,
  useMedia,
  useMoment,
  useNow,
  usePosition,
} from './run-hooks.js'
import { listRunSteps, type RunStep } from '../run-steps.js'
import type { MarkRequest } from '../requests.js'
import { StepMarks } from './step-marks.js'
import { findMark, findSteps, StepsPane } from './steps-pane.js'
import { Timeline } from './timeline.js'
import { Transcript } from './transcript.js'
import { capitalize, formatStatePath, compareAddress, formatError, sessionAddress } from '../format.js'

const tabs = ['transcript', 'request', 'state', 'guards', 'cost', 'record', 'chart'] as const
type Tab = (typeof tabs)[number]

const LazyMachineScreen = createLazyScreen(() =>
  import('./machine-screen.js').then((part) => part.MachineScreen),
)
export const MachineScreen = (props: { source: Source; id: string }) => (
  <LazyMachineScreen {...props} Pill={RowPill} />
)
/** Loaded on demand, because ended runs do not need it. */
const Actions = createLazyScreen(() => import('./actions.js').then((part) => part.Actions))
const RunTab = createLazyScreen(() => import('./run-tabs.js').then((part) => part.RunTab))

interface RunProps {
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

interface Props extends Omit<RunProps, 'id'> {
  chart: ChartView
  view: SessionView
  end: MomentView | null
  change: (change: (view: SessionView) => SessionView) => void
  reload: () => void
}

function Run({ source, chart, view, end, change, reload, seq: startSeq, onProblem }: Props) {
  const { rows, session, readOnly, isPart } = view
  const { id } = session
  const last = rows.length - 1
  const { place, ms, isPlaying, isLive, go, play, setLive } = usePosition(rows, startSeq, source.isFile)
  const isRunning = session.status === 'running'
  const hasExpiry = session.status === 'waiting' && session.wakeAt !== null
  const time = useNow((isRunning || hasExpiry) && !source.isFile)
  const now = isRunning ? time : undefined
  const isNarrow = useMedia('(max-width: 1279px)')
  const isOpen = ['running', 'waiting', 'sleeping'].includes(session.status)
  const [tab, setTab] = useState<Tab>(chart.editor ? 'chart' : 'transcript')
  const [fork, setFork] = useState<{
    Dialog: typeof ForkDialog
    change: Change | null
    seq: number
  } | null>(null)
  const [sharing, setSharing] = useState<{ Dialog: typeof ShareDialog } | null>(null)
  const [stepWords, setStepWords] = useState('')
  const [streaming, setStreaming] = useState('')
  const [areLanesShown, showLanes] = useState(() => matchMedia('(min-height: 790px)').matches)
  // All messages of a long session are loaded once the reader searches them or scrolls to earlier ones.
  const [isWhole, wantWhole] = useState(false)
  // Partial moments are dropped when the whole session is loaded.
  const moments = useMemo(
    () => createMomentCache(source, id, { known: end, isWhole }),
    [source, id, isPart, isWhole],
  )
  const row = rows[Math.min(place, last)]
  const [round, setRound] = useState(0)
  const moment = useMoment(moments, row, isPart ? 0 : (rows.at(-1)?.seq ?? 0), round)
  const [wantsVisits, wantVisits] = useState(false)
  const visits = useLoaded(wantsVisits ? 'visits' : '', () =>
    wantsVisits ? source.send(paths.visits) : Promise.resolve(null),
  )

  useLive(source, id, isPart ? null : (rows[last]?.seq ?? 0), (message) => {
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
  })

  // The first step of a partial session also contains everything before that part.
  const steps = useMemo(
    () => listRunSteps({ rows, bars: view.bars }, now).slice(isPart ? 1 : 0),
    [rows, view.bars, isPart, now],
  )
  const goStep = (by: 1 | -1): void => {
    const found = findSteps(steps, stepWords)
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
  useWrittenAddress(source.isFile ? null : sessionAddress(id, isLive ? undefined : row?.seq))

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
  /** Whether this studio's agent acts on the session. A process that holds the session acts with its own agent. */
  const isOwn = !session.isAttached && session.holder === null
  const canAct = !source.isFile && readOnly === null
  const openFork = useLatest((change: Change | null, seq: number = row?.seq ?? 1): void => {
    loadPart(() => import('./fork-dialog.js')).then(
      ({ ForkDialog: Dialog }) => setFork({ Dialog, change, seq }),
      (error: unknown) => onProblem(formatError(error)),
    )
  })
  useEffect(() => {
    if (!lastFork.isDue || lastFork.id !== id || lastFork.change === null) return
    lastFork.isDue = false
    openFork(lastFork.change)
  }, [id])
  const answer = async (reply: Answer): Promise<void> => {
    await source.send(paths.answers(id), reply)
    if (reply.type === 'revoke') {
      // The next run may read the message, in which case no record follows now.
      moments.forgetFrom(rows[last]?.seq ?? 1)
      setRound((before) => before + 1)
    }
    setLive(true)
  }
  const mark = async (request: MarkRequest): Promise<void> => {
    await source.send(paths.marks(id), request)
    const { seq, mark: kind, note } = request
    const others = session.marks.filter((one) => one.seq !== seq)
    const marks = kind === null ? others : [...others, { seq, mark: kind, note, at: Date.now() }]
    change((before) => ({ ...before, session: { ...before.session, marks } }))
  }
  const share = async (): Promise<void> => {
    const { ShareDialog: Dialog } = await loadPart(() => import('./share-dialog.js'))
    setSharing({ Dialog })
  }
  const showTab = useLatest((chosen: Tab): void => {
    if (chosen === 'cost' && place !== last) go(last)
    setTab(chosen)
  })
  const load = useCallback((of: string) => source.send(paths.session(of)), [source])
  const shown = { view, rows, bars: view.bars, steps, place, now, load, onPlace: go }
  const verdict = useMemo(
    () => (
      <VerdictStrip
        {...shown}
        onFork={canAct ? (seq) => openFork(null, seq) : null}
        onShare={source.isFile ? null : share}
        otherAgent={isOwn ? view.otherAgent : null}
        onResume={canAct && mayResume(view) ? () => answer({ type: 'resume' }) : null}
        onTab={showTab}
      />
    ),
    [view, steps, canAct],
  )
  if (!row) return null
  const step = steps.findLast(({ from }) => from <= place)
  const chartPane = (
    <ChartPane
      chart={chart}
      row={row}
      first={first}
      place={place}
      ms={matchMedia('(prefers-reduced-motion: reduce)').matches ? 0 : ms}
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
      <RunHead
        view={view}
        row={row}
        step={step}
        onFork={canAct ? () => openFork(null) : null}
        readOnly={source.isFile ? null : readOnly}
      >
        {step && (canAct || (session.isAttached && !source.isFile)) && (
          <StepMarks
            step={step.step}
            seq={rows[step.place]?.seq ?? row.seq}
            mark={findMark(step, rows, session.marks)}
            onMark={mark}
          />
        )}
      </RunHead>
      {verdict}
      <StepsPane {...shown} words={stepWords} onWords={setStepWords} />
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
            <Trouble error={moment} onRetry={reload} isPart />
          ) : shownTab === 'transcript' ? (
            <Transcript
              messages={moment.transcript}
              earlier={moment.earlier}
              onWhole={() => wantWhole(true)}
              instructions={moment.instructions}
              streaming={place === last ? streaming : ''}
              settled={moment.seq === row.seq ? row.calls : noCalls}
              speaker={(moment.context as { speaker?: string | null } | null)?.speaker ?? null}
              error={findError(moment)}
              onEdit={canAct ? openFork : null}
            />
          ) : (
            <RunTab
              tab={shownTab}
              moment={moment}
              row={row}
              {...shown}
              elapsedMs={measureElapsed(rows, place)}
              request={findRequest(rows, step, place)}
              loadRequest={(seq, all) => source.send(paths.request(id, seq, all))}
              onStep={(step) => {
                go(step.place)
                setTab('request')
              }}
            />
          )}
        </div>
        {moment !== null &&
          !(moment instanceof Error) &&
          moment.actions.length + moment.pending.length + moment.grants.length > 0 && (
            <Actions
              key={id}
              moment={moment}
              isAsleep={row.wakeAt !== undefined}
              now={place === last ? time : undefined}
              readOnly={session.isAttached ? null : readOnly}
              hasResume={canAct && mayResume(view)}
              otherAgent={isOwn ? view.otherAgent : null}
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
          {...shown}
          areLanesShown={areLanesShown}
          loadMoment={(seq) => moments.loadMoment(seq, rows.at(-1)?.seq ?? 0)}
        />
        <Slider
          {...shown}
          isPlaying={isPlaying}
          isLive={source.isFile ? null : isLive && (isOpen || place === last)}
          isOpen={isOpen}
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
          load={(as) => source.send(paths.share(id, as))}
          onClose={() => setSharing(null)}
        />
      )}
      {fork && (
        <fork.Dialog
          {...shown}
          seq={fork.seq}
          change={fork.change}
          moment={moment instanceof Error ? null : moment}
          otherAgent={view.otherAgent}
          onFork={async (request, change) => {
            const { sessionId } = await source.send(paths.fork(id), request)
            setFork(null)
            Object.assign(lastFork, { id, change })
            location.hash = request.run ? compareAddress(id, sessionId) : sessionAddress(sessionId)
          }}
          onClose={() => setFork(null)}
        />
      )}
    </main>
  )
}

/** Of several requests, the last one at or before this record, or else the first. 0 if there is none. */
function findRequest(rows: readonly RecordRow[], step: RunStep | undefined, place: number): number {
  if (!step) return 0
  const ends = rows.slice(step.from, step.to + 1).filter(isRequestEnd)
  const seq = rows[place]?.seq ?? 0
  return (ends.findLast((row) => row.seq <= seq) ?? ends[0])?.seq ?? 0
}

function findError({ context }: MomentView): string | null {
  const { state, error } = (context ?? {}) as { state?: string; error?: { message?: string } | null }
  return state === 'ERROR' ? (error?.message ?? null) : null
}

const noCalls: RecordRow['calls'] = []

function measureElapsed(rows: readonly RecordRow[], place: number): number {
  const run = rows[place]?.run
  return Math.max(0, (rows[place]?.at ?? 0) - (rows.find((row) => row.run === run)?.at ?? 0))
}

function findFirstPlaces(
  rows: readonly RecordRow[],
  { transitions }: ChartView,
): ReadonlyMap<string, number> {
  const known = new Map(transitions.map((one) => [one.id, one]))
  const first = new Map<string, number>()
  for (const [place, row] of rows.entries()) {
    for (const id of [...listStates(row, known), ...row.transitionIds])
      if (!first.has(id)) first.set(id, place)
  }
  return first
}
