import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type {
  Answer,
  ChartView,
  ForkEdit,
  LiveMessage,
  MomentView,
  RecordRow,
  SessionView,
} from '../protocol.js'
import { Actions, ForkDialog } from './actions.js'
import { ChartPane } from './chart-pane.js'
import { listStates, findStepStart, mergeBars, mergeRows } from './timeline-layout.js'
import { Loading, Trouble, useLoaded } from './loading.js'
import { MomentCache } from './moment-cache.js'
import { useOpenedSession } from './use-opened-session.js'
import { Slider } from './slider.js'
import type { Source } from './data-source.js'
import { BudgetTab, GuardsTab, RecordTab, StateTab } from './run-tabs.js'
import { Timeline } from './timeline.js'
import { Transcript } from './transcript.js'
import { formatCount, formatMoney, formatShort, formatStatePath, getTone } from './format.js'

/** States from which a fork can run. */
const forkableStates = new Set(['RUNNING', 'WAITING_FOR_TOOL', 'WAITING_FOR_INPUT', 'PAUSED'])

const tabs = ['transcript', 'record', 'state', 'guards', 'budget'] as const
type Tab = (typeof tabs)[number]

/** Milliseconds between records during playback. */
const playMs = 900
const stepMs = 700

export interface RunProps {
  source: Source
  id: string
  /** The first record to show; null: the last one. */
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
  if (!session.value || !chart.value) return <Loading what="Reading the session" />
  const { view, moment } = session.value
  if (view.rows.length === 0) {
    return (
      <div class="trouble">
        <h2>{view.session.problem === null ? 'Nothing has been written yet' : 'This session is damaged'}</h2>
        <p>{view.session.problem ?? 'The session exists, and its first record is still to come.'}</p>
        <a class="button" href="#/">
          All sessions
        </a>
      </div>
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
  /** The moment of the last record, if it is loaded. */
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
  const isOpen = session.standing === 'running' || session.standing === 'waiting'
  const [isLive, setLive] = useState(startSeq === null && !source.isFile)
  const [isPlaying, setPlaying] = useState(false)
  const [ms, setMs] = useState(0)
  const [tab, setTab] = useState<Tab>('transcript')
  const [fork, setFork] = useState<{ edit: ForkEdit | null } | null>(null)
  const [streaming, setStreaming] = useState('')
  const [areLanesShown, showLanes] = useState(innerHeight >= 880)
  // Moments of a part are dropped when the whole session is loaded.
  const moments = useMemo(() => new MomentCache(source, id, end), [source, id, isPart])
  const row = rows[Math.min(place, last)]
  const [round, setRound] = useState(0)
  const moment = useMoment(moments, row, isPart ? 0 : (rows.at(-1)?.seq ?? 0), round)
  const [wantsVisits, wantVisits] = useState(false)
  const visits = useLoaded(wantsVisits ? 'visits' : '', () =>
    wantsVisits ? source.visits() : Promise.resolve(null),
  )

  /** Goes to a record: the token walks to the next one, and jumps to any other. */
  const go = useCallback(
    (to: number) => {
      const at = Math.max(0, Math.min(last, to))
      setMs(at === place + 1 ? stepMs : 0)
      setPlace(at)
      setLive(false)
      setPlaying(false)
    },
    [place, last],
  )

  useLive(source, id, isPart ? null : (rows[last]?.seq ?? 0), {
    hear: (message) => {
      if (message.type === 'store') onProblem(message.problem)
      else if (message.type === 'rows') {
        moments.forgetFrom(message.reset ? 1 : (message.rows[0]?.seq ?? Infinity))
        setRound((before) => before + 1)
        setStreaming('')
        change((before) => ({
          ...before,
          rows: message.reset ? message.rows : mergeRows(before.rows, message.rows),
          bars: message.reset ? message.bars : mergeBars(before.bars, message.bars),
        }))
      } else if (message.type === 'session' && message.row.id === id) {
        change((before) => ({ ...before, session: message.row }))
      } else if (message.type === 'text') {
        setStreaming((before) => (message.reset ? message.text : before + message.text))
      } else if (message.type === 'gone' && message.sessionId === id) reload()
    },
  })

  // In live mode, the page follows the run.
  useEffect(() => {
    if (!isLive) return
    setMs(last === place + 1 ? stepMs : 0)
    setPlace(last)
  }, [isLive, last])

  useEffect(() => {
    if (!isPlaying) return undefined
    const timer = setInterval(() => {
      setMs(playMs - 150)
      setPlace((at) => {
        if (at >= last - 1) setPlaying(false)
        return Math.min(last, at + 1)
      })
    }, playMs)
    return () => clearInterval(timer)
  }, [isPlaying, last])

  const play = (): void => {
    setLive(false)
    if (!isPlaying && place >= last) setPlace(0)
    setPlaying(!isPlaying)
  }
  useKeys((event) => {
    const { key, shiftKey } = event
    if (key === 'ArrowRight') go(shiftKey ? findStepStart(rows, place, 1) : place + 1)
    else if (key === 'ArrowLeft') go(shiftKey ? findStepStart(rows, place, -1) : place - 1)
    else if (key === 'Home') go(0)
    else if (key === 'End') go(last)
    else if (key === ' ') play()
    else if (/^[1-5]$/.test(key)) setTab(tabs[Number(key) - 1] ?? 'transcript')
    else return false
    return true
  })
  useAddress(id, isLive ? null : (row?.seq ?? null), source.isFile)

  useEffect(() => {
    document.title = `${session.title || session.id} – Statewright`
  }, [session.title, session.id])
  const first = useMemo(() => findFirstPlaces(rows, chart), [rows, chart])
  const jump = (matches: (row: RecordRow) => boolean): void => {
    // The nearest one before here, else the first one.
    const before = rows.findLastIndex((one, at) => at < place && matches(one))
    const at = before === -1 ? rows.findIndex(matches) : before
    if (at !== -1) go(at)
  }
  const canAct = !source.isFile && readOnly === null
  const onEdit = useCallback((edit: ForkEdit) => setFork({ edit }), [])
  if (!row) return null
  const answer = async (given: Answer): Promise<void> => {
    await source.answer(id, given)
    setLive(true)
  }
  return (
    <main class="run">
      <div class="run-head">
        <div class="run-title">
          <h1>{session.title || session.name || session.id}</h1>
          <p>
            <StatePill state={row.state} />
            <span>
              {row.step > 0 ? `step ${row.step}` : 'before the first step'}
              {row.run > 1 ? `, run ${row.run}` : ''}
            </span>
            <span>{formatShort(row.tokens)} tokens</span>
            {row.cost !== null && <span>{formatMoney(row.cost)}</span>}
            {session.forkedFrom && (
              <a
                href={`#/compare/${encodeURIComponent(session.forkedFrom.sessionId)}/${encodeURIComponent(id)}`}
              >
                Fork of {session.forkedFrom.sessionId} at record {session.forkedFrom.seq}: compare
              </a>
            )}
            {view.forks.length > 0 && (
              <a
                href={`#/compare/${encodeURIComponent(id)}/${encodeURIComponent(view.forks.at(-1)?.sessionId ?? '')}`}
              >
                {formatCount(view.forks.length, 'fork')}: compare
              </a>
            )}
          </p>
          {session.problem !== null && <p class="problem-note">Damaged: {session.problem}</p>}
        </div>
        <div class="run-now">
          <span class="now-label">{row.label}</span>
          <span class="now-path">{formatStatePath(row.to)}</span>
        </div>
        {canAct && (
          <button type="button" onClick={() => setFork({ edit: null })}>
            Fork from here
          </button>
        )}
      </div>
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
        <div class="tabs" role="tablist" aria-label="What stands at this record">
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
            <Loading what="Reading the record" />
          ) : moment instanceof Error ? (
            <Trouble error={moment} onRetry={reload} />
          ) : tab === 'transcript' ? (
            <Transcript
              messages={moment.transcript}
              streaming={place === last ? streaming : ''}
              onEdit={canAct ? onEdit : null}
            />
          ) : tab === 'record' ? (
            <RecordTab moment={moment} row={row} bars={view.bars} />
          ) : tab === 'state' ? (
            <StateTab moment={moment} />
          ) : tab === 'guards' ? (
            <GuardsTab guards={moment.guards} />
          ) : (
            <BudgetTab budget={moment.budget} />
          )}
        </div>
        {moment !== null && !(moment instanceof Error) && (
          <Actions
            key={id}
            moment={moment}
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
          onPlace={go}
        />
        <Slider
          rows={rows}
          place={place}
          isPlaying={isPlaying}
          isLive={source.isFile ? null : isLive && (isOpen || place === last)}
          onPlace={go}
          onPlay={play}
          onLive={() => setLive(!isLive)}
          areLanesShown={areLanesShown}
          onLanes={() => showLanes(!areLanesShown)}
        />
      </footer>
      <Announcer text={`${row.label}. ${formatStatePath(row.to)}`} />
      {fork && (
        <ForkDialog
          seq={row.seq}
          edit={fork.edit}
          canRun={forkableStates.has(row.state)}
          onFork={async (request) => {
            const { sessionId } = await source.fork(id, request)
            setFork(null)
            location.hash = `#/session/${encodeURIComponent(sessionId)}`
          }}
          onClose={() => setFork(null)}
        />
      )}
    </main>
  )
}

export function StatePill({ state }: { state: string | null }) {
  return (
    <span class={`pill tone-${getTone(state)}`}>
      {(state ?? 'not begun').replaceAll('_', ' ').toLowerCase()}
    </span>
  )
}

/** The moment of a record. The previous one stays while it is being loaded. */
function useMoment(
  moments: MomentCache,
  row: RecordRow | undefined,
  last: number,
  round: number,
): MomentView | Error | null {
  const seq = row?.seq ?? 0
  const known = moments.findMoment(seq)
  const [state, setState] = useState<MomentView | Error | null>(null)
  useEffect(() => {
    if (seq === 0) return undefined
    let isOver = false
    moments.loadMoment(seq, last).then(
      (moment) => isOver || setState(moment),
      (error: unknown) => isOver || setState(error instanceof Error ? error : new Error(String(error))),
    )
    return () => {
      isOver = true
    }
  }, [moments, seq, last, round])
  return known ?? state
}

/** Subscribes to live messages. `after`: the last record that the page has; null: not known yet. */
function useLive(
  source: Source,
  id: string,
  after: number | null,
  { hear }: { hear: (message: LiveMessage) => void },
): void {
  const latest = useRef(hear)
  latest.current = hear
  const isOff = after === null
  useEffect(
    () => (after === null ? undefined : source.live({ id, after }, (message) => latest.current(message))),
    [source, id, isOff],
  )
}

/** Handles keys of the screen, except in input fields. */
export function useKeys(press: (event: KeyboardEvent) => boolean): void {
  const latest = useRef(press)
  latest.current = press
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const { target } = event
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
      if (!(target instanceof HTMLElement) || document.querySelector('dialog[open]')) return
      const writes = target.matches('textarea, select, input:not([type=range]), [role=treeitem]')
      const clicks = event.key === ' ' && target.matches('button, a, summary')
      if (!writes && !clicks && latest.current(event)) event.preventDefault()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [])
}

/** Writes the record into the address, so that it can be shared; delayed, because a moving slider changes it often. */
function useAddress(id: string, seq: number | null, isFile: boolean): void {
  useEffect(() => {
    if (isFile) return undefined
    const timer = setTimeout(() => {
      history.replaceState(null, '', `#/session/${encodeURIComponent(id)}${seq === null ? '' : `/${seq}`}`)
    }, 250)
    return () => clearTimeout(timer)
  }, [id, seq, isFile])
}

/** Announces the current record to screen readers after a short delay. */
function Announcer({ text }: { text: string }) {
  const [said, say] = useState('')
  useEffect(() => {
    const timer = setTimeout(() => say(text), 400)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <div class="sr" role="status" aria-live="polite">
      {said}
    </div>
  )
}

function prefersReducedMotion(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches
}

/** The first record of each state and transition. */
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
